"""`gpclf compare`: kernels, likelihoods and inferences, and other libraries, on the same folds."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
import typer
from rich.table import Table

from gpclf.cli import console, rivals, scoring
from gpclf.cli.errors import Mistake, sentence
from gpclf.cli.fit import GUESSED, Budget, Columns, check_budget, classifier, read
from gpclf.cli.options import Common, names, taking
from gpclf.cli.pictures import SUFFIXES, scores_drawn
from gpclf.cli.splits import Split, folds
from gpclf.cli.training import Training
from gpclf.data.sources.writing import check_place, replaced
from gpclf.inference.engines import NAMES as ENGINES
from gpclf.kernels import kernel_from
from gpclf.likelihoods import NAMES as LIKELIHOODS
from gpclf.names import unknown
from gpclf.report import Interval


@dataclass(frozen=True, kw_only=True)
class CompareOptions(Common, Budget, Columns):
    """The options of `gpclf compare`."""

    _panel: ClassVar[str] = "What is compared"

    data: Annotated[str, typer.Argument(help="A file, a folder of files, or - for standard input.")]
    kernels: Annotated[
        str | None, typer.Option(help="Kernels beside the default, as 'rbf,laplace'.")
    ] = None
    likelihoods: Annotated[
        str | None, typer.Option(help="Likelihoods beside the default, as 'step,robust-max'.")
    ] = None
    inferences: Annotated[
        str | None, typer.Option(help="Inferences beside the default, as 'natural,power-ep'.")
    ] = None
    rivals: Annotated[
        str,
        typer.Option(help="all that are installed, none, or some by name, as 'catboost'."),
    ] = "all"
    cv: Annotated[int, typer.Option(help="The number of folds.", min=2)] = 5
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A picture: .png, .svg or .pdf.")
    ] = None
    json: Annotated[bool, typer.Option("--json", help="Print the scores for machines.")] = False


class Result(NamedTuple):
    """What one method made of all folds."""

    scores: dict[str, Interval]
    seconds: float


@taking(
    CompareOptions,
    "gpclf compare sources.csv --label class --drop name -o compared.png",
    "gpclf compare sources.csv --label class --kernels rbf --inferences natural --rivals none",
    "gpclf compare sources.csv --label class --rivals 'random forest' --cv 3 --json",
)
def compare(wanted: CompareOptions) -> None:
    """Score models and rivals on the same folds of a table, each with its interval.

    The default model stands beside models that differ in one thing from it, and beside
    scikit-learn's logistic regression, boosting and forest; and CatBoost, LightGBM and XGBoost
    where these are installed.
    """
    check(wanted)
    methods = asked(wanted)
    data = read(wanted, wanted.data)
    _, index = np.unique(data.y, return_inverse=True)
    splits = folds(wanted.cv, index, wanted.seed, data.group, data.time)
    found = results(wanted, data, methods, splits)
    if wanted.json:
        scores = scoring.as_json({name: each.scores for name, each in found.items()})
        for name, each in found.items():
            scores[name]["seconds"] = round(each.seconds, 2)
        typer.echo(scoring.printed({"data": wanted.data, "folds": wanted.cv, "scores": scores}))
    else:
        wanted.voice.show(table(found, f"{wanted.data}, {len(data.y):,} rows in {wanted.cv} folds"))
    if wanted.output is not None:
        with replaced(wanted.output) as place:
            one = {name: each.scores["nll"] for name, each in found.items()}
            scores_drawn(one, place, wanted.output.suffix[1:].lower(), Path(wanted.data).name)
        wanted.voice.note(str(wanted.output))


def check(wanted: CompareOptions) -> None:
    """What is wrong with the options alone."""
    check_budget(wanted)
    if wanted.output is not None:
        if wanted.output.suffix.lower() not in SUFFIXES:
            raise Mistake(f"--output must end in {', '.join(SUFFIXES)}, got {wanted.output}.")
        check_place(wanted.output, "--output")


def asked(wanted: CompareOptions) -> dict[str, scoring.Make | None]:
    """Makers of our models by name, and the names of rivals."""
    make = partial(classifier, wanted)
    methods: dict[str, Any] = {scoring.OURS: partial(make, GUESSED, None, GUESSED)}
    for kernel in names(wanted.kernels):
        kernel_from(kernel)
        methods[f"{scoring.OURS}, {kernel}"] = partial(make, GUESSED, kernel, GUESSED)
    for likelihood in names(wanted.likelihoods):
        _known("likelihood", likelihood, list(LIKELIHOODS))
        methods[f"{scoring.OURS}, {likelihood}"] = partial(make, likelihood, None, GUESSED)
    for inference in names(wanted.inferences):
        _known("inference", inference, list(ENGINES))
        methods[f"{scoring.OURS}, {inference}"] = partial(make, GUESSED, None, inference)
    there = rivals.installed()
    chosen = {"all": there, "none": []}.get(wanted.rivals)
    if chosen is None:
        chosen = _chosen(wanted.rivals, there)
    return methods | dict.fromkeys(chosen)


def _chosen(text: str, there: list[str]) -> list[str]:
    found = []
    for name in names(text.replace(rivals.BOOSTING, "boosting")):
        plain = rivals.BOOSTING if name == "boosting" else name
        if plain in rivals.OTHERS and plain not in there:
            raise Mistake(f"{plain} is not installed: pip install {plain}.")
        _known("rival", plain, there)
        found.append(plain)
    return found


def _known(what: str, name: str, known: list[str]) -> None:
    if name not in known:
        raise Mistake(unknown(what, name, known))


def results(
    wanted: CompareOptions,
    data: Training,
    methods: dict[str, scoring.Make | None],
    splits: list[Split],
) -> dict[str, Result]:
    """Of every method that can learn from this table, the best first."""
    found = {}
    for name, make in methods.items():
        began = perf_counter()
        try:
            with wanted.voice.bar(name) as stage:
                left_out = scoring.out_of_fold(data, splits, {name: make}, wanted.seed, stage)
                seconds = perf_counter() - began
                stage(1.0, f"{name}: intervals")
                found[name] = Result(left_out.scores()[name], seconds)
        except (Mistake, ValueError) as error:
            wanted.voice.warn(f"{name} is left out: {sentence(error)}")
    if not found:
        raise Mistake("No method could learn from this table.")
    return dict(sorted(found.items(), key=lambda pair: pair[1].scores["nll"].value))


def table(found: dict[str, Result], title: str) -> Table:
    """A line for each method: log-loss with its interval, the other scores, seconds."""
    headings = ("method", *scoring.HEADINGS.values(), "seconds")
    rows = []
    for name, (scores, seconds) in found.items():
        first, *others = (scores[metric] for metric in scoring.HEADINGS)
        figures = (f"{other.value:.3f}" for other in others)
        rows.append((name, scoring.shown(first), *figures, f"{seconds:.1f}"))
    return console.table(headings, rows, headings[1:], title=title)
