"""`gpclf evaluate`: how good a model is on rows that it has not seen, beside two rivals."""

import re
from dataclasses import dataclass
from typing import Annotated, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
import typer

from gpclf.cli import rivals, scoring
from gpclf.cli.errors import Mistake
from gpclf.cli.models import Opened, index_of, labelled_layout, open_model
from gpclf.cli.options import Common, Reading, seed_option, taking
from gpclf.cli.sources import Source, source
from gpclf.cli.tables import blocks, whole
from gpclf.report import Interval, intervals

CONDITION = re.compile(r"\s*([\w-]+)\s*(<=|>=|<|>)\s*([-+.\w]+)\s*")
NAMES = {"log-loss": "nll", "logloss": "nll", **{name: name for name in scoring.HEADINGS}}
HOLDS = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}


@dataclass(frozen=True, kw_only=True)
class EvaluateOptions(Common, Reading):
    """The options of `gpclf evaluate`."""

    _panel: ClassVar[str] = "Options"

    model: Annotated[str, typer.Argument(help="A model file.")]
    data: Annotated[str, typer.Argument(help="Rows with labels, that the model has not seen.")]
    label: Annotated[
        str | None, typer.Option("--label", "-l", help="The column of classes; else as at the fit.")
    ] = None
    train: Annotated[
        str | None,
        typer.Option(help="The rows that the model learned from: rivals learn from them, too."),
    ] = None
    json: Annotated[bool, typer.Option("--json", help="Print the scores for machines.")] = False
    fail_if: Annotated[
        list[str] | None,
        typer.Option(help="Exit with 1 if it holds, as 'nll>0.3' or 'accuracy<0.9'. Repeatable."),
    ] = None
    seed: Annotated[int, seed_option("Of the intervals.")] = 0


class Condition(NamedTuple):
    """What a pipeline must not let pass."""

    text: str
    metric: str
    relation: str
    bound: float

    def holds(self, scores: scoring.Scores) -> bool:
        """Of these scores."""
        return bool(HOLDS[self.relation](scores[self.metric].value, self.bound))


@taking(
    EvaluateOptions,
    "gpclf evaluate sources.gpclf new.csv",
    "gpclf evaluate sources.gpclf new.csv --train sources.csv",
    "gpclf evaluate sources.gpclf new.csv --json --fail-if 'nll>0.9' --fail-if 'auc<0.5'",
)
def evaluate(wanted: EvaluateOptions) -> None:
    """Score a model on labelled rows that it has not seen.

    log-loss, Brier score, accuracy, AUC and calibration error (ECE), each with a 95 % interval by
    the bootstrap. A model keeps no training rows: with --train, logistic regression and calibrated
    boosting learn from these and are scored on the same rows.
    """
    conditions = [condition(text) for text in wanted.fail_if or ()]
    opened = open_model(wanted.model)
    logs, y = scored_rows(wanted, opened)
    found = {scoring.OURS: intervals(logs, y, seed=wanted.seed)}
    if wanted.train is not None:
        found |= of_rivals(wanted, opened)
    broken = [each for each in conditions if each.holds(found[scoring.OURS])]
    if wanted.json:
        content = {"model": wanted.model, "data": wanted.data, "rows": len(y)}
        failed = [each.text for each in broken]
        scores = scoring.as_json(found)
        typer.echo(scoring.printed({**content, "scores": scores, "failed": failed}))
    else:
        title = f"{wanted.model} on {len(y):,} rows of {wanted.data}"
        wanted.voice.show(scoring.table(found, title))
        if wanted.train is None:
            wanted.voice.note("Is it worth it? --train with its training rows shows two rivals.")
    for each in broken:
        value = found[scoring.OURS][each.metric].value
        typer.echo(f"Failed: {each.text}, {each.metric} is {value:.4g}.", err=True)
    if broken:
        raise typer.Exit(1)


def condition(text: str) -> Condition:
    """A condition as it is written, or one sentence on how."""
    found = CONDITION.fullmatch(text)
    try:
        if found is None:
            raise ValueError
        metric, relation, bound = found.groups()
        return Condition(text, NAMES[metric.lower()], relation, float(bound))
    except (KeyError, ValueError):
        raise Mistake(
            f"--fail-if must be a score, <, <=, > or >=, and a number, as 'nll>0.3', got {text!r}; "
            f"the scores are {', '.join(scoring.HEADINGS)}."
        ) from None


def scored_rows(wanted: EvaluateOptions, opened: Opened) -> tuple[np.ndarray, np.ndarray]:
    """ln p of all rows, and their classes; block by block."""
    data = source(wanted.data, wanted)
    logs, index = [], []
    with wanted.voice.bar(f"scoring {data.name}") as stage:
        for rows in blocks(data, labelled_layout(opened, data, wanted.label)):
            index.append(index_of(opened, rows, data.name))
            logs.append(opened.clf.predict_log_proba(opened.takes(rows.X), X_std=rows.X_std))
            stage(data.meter.share)
    return np.concatenate(logs), np.concatenate(index)


def of_rivals(wanted: EvaluateOptions, opened: Opened) -> dict[str, dict[str, Interval]]:
    """Rivals that learn from the training rows."""
    assert wanted.train is not None
    train, test = source(wanted.train, wanted), source(wanted.data, wanted)
    both, places = [], []
    for data in (train, test):
        rows = whole(_again(data), labelled_layout(opened, data, wanted.label))
        both.append(rows.X)
        places.append(index_of(opened, rows, data.name))
    encoded = rivals.Encoded.of(pa.concat_tables(both).unify_dictionaries())
    size = len(places[0])
    known = encoded._replace(X=encoded.X[:size])
    found = {}
    with wanted.voice.bar("rivals") as stage:
        for name in rivals.USUAL:
            stage(None, name)
            count = len(opened.clf.classes_)
            predict = rivals.fit(name, known, places[0], count, wanted.seed)
            logs = predict(encoded.X[size:])
            found[name] = intervals(logs, places[1], seed=wanted.seed)
    return found


def _again(data: Source) -> Source:
    """The same table to be read once more; standard input cannot be."""
    if data.parts[0].path is None:
        raise Mistake("--train needs both tables as files: standard input can be read once only.")
    return data
