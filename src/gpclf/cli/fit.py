"""`gpclf fit`: from a table and the name of its label to a model file."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
import typer
from rich.text import Text

from gpclf import __version__
from gpclf.cli import console, scoring
from gpclf.cli.errors import Mistake
from gpclf.cli.findings import Finding
from gpclf.cli.kinds import NUMBER
from gpclf.cli.options import Common, Reading, read_config, taking
from gpclf.cli.rivals import USUAL
from gpclf.cli.sources import source
from gpclf.cli.splits import folds, holdout
from gpclf.cli.tables import concatenated
from gpclf.cli.training import Roles, Training, prepared
from gpclf.data.sources.writing import check_place
from gpclf.estimators import GPClassifier
from gpclf.inference.engines import NAMES as ENGINES
from gpclf.kernels import kernel_from
from gpclf.likelihoods import NAMES as LIKELIHOODS
from gpclf.names import unknown

GUESSED = "auto"
ERROR_SUFFIXES = ("_err", "_error", "_std", "_sigma", "_unc")
ROLES = tuple(field.name for field in fields(Roles))
NO_SETTINGS = ("data", "output", "quiet", "verbose", "debug", "json", "config")
NO_SETTINGS += ("checkpoint", "resume")


@dataclass(frozen=True, kw_only=True)
class Columns(Reading):
    """What the columns of a training table are for."""

    _panel: ClassVar[str] = "What the columns are for"

    label: Annotated[str, typer.Option("--label", "-l", help="The column of classes.")]
    features: Annotated[
        str | None,
        typer.Option(help="The columns to learn from, as a,b,c or with patterns; else all others."),
    ] = None
    drop: Annotated[str | None, typer.Option(help="Columns not to learn from.")] = None
    categories: Annotated[
        str | None, typer.Option(help="Columns of numbers that are codes of categories.")
    ] = None
    errors: Annotated[
        str | None,
        typer.Option(help="Columns of measurement errors: 'flux=flux_err,index=index_err'."),
    ] = None
    errors_suffix: Annotated[
        str | None, typer.Option(help="Instead: how the names of such columns end, as _err.")
    ] = None
    weight: Annotated[str | None, typer.Option(help="How much each row counts.")] = None
    group: Annotated[
        str | None, typer.Option(help="Rows that belong together: scored as whole groups.")
    ] = None
    time: Annotated[str | None, typer.Option(help="When each row was: the latest are scored.")] = (
        None
    )
    drop_unlabelled: Annotated[
        bool, typer.Option("--drop-unlabelled", help="Leave out rows that have no label.")
    ] = False

    @property
    def roles(self) -> Roles:
        """They alone."""
        return Roles(**{name: getattr(self, name) for name in ROLES})


@dataclass(frozen=True, kw_only=True)
class Budget:
    """How much work is put into a model."""

    _panel: ClassVar[str] = "How the model is learned"

    n_inducing: Annotated[
        str, typer.Option(help="How many inducing points; all: every row, up to 5,000.")
    ] = GUESSED
    max_epochs: Annotated[
        str, typer.Option(help="At most so many evaluations for the kernel and passes.")
    ] = GUESSED
    max_seconds: Annotated[
        float | None, typer.Option(help="A fit ends about then with the best it has.")
    ] = None
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Of all that is random.")] = 0


@dataclass(frozen=True, kw_only=True)
class Learning(Budget):
    """How a model is learned."""

    _panel: ClassVar[str] = "How the model is learned"

    kernel: Annotated[
        str | None, typer.Option(help="As 'rbf + 0.5 * linear'; else chosen from the rows.")
    ] = None
    likelihood: Annotated[str, typer.Option(help=f"{', '.join(LIKELIHOODS)}.")] = GUESSED
    inference: Annotated[str, typer.Option(help=f"{', '.join(ENGINES)}.")] = GUESSED


@dataclass(frozen=True, kw_only=True)
class FitOptions(Common, Learning, Columns):
    """The options of `gpclf fit`."""

    data: Annotated[str, typer.Argument(help="A file, a folder of files, or - for standard input.")]
    output: Annotated[Path, typer.Option("--output", "-o", help="The model file.")] = Path(
        "model.gpclf"
    )
    holdout: Annotated[
        float | None,
        typer.Option(help="Keep such a share of the rows apart, and score the model on them."),
    ] = None
    cv: Annotated[
        int | None, typer.Option(help="Score by so many folds; the model learns from all rows.")
    ] = None
    checkpoint: Annotated[
        Path | None,
        typer.Option(help="Keep the fit in this file, at least every minute, in case it is ended."),
    ] = None
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on from the checkpoint, if it is there.")
    ] = False
    rivals: Annotated[
        bool, typer.Option(help="Score logistic regression and boosting on the same rows, too.")
    ] = True
    json: Annotated[bool, typer.Option("--json", help="Print a summary for machines.")] = False
    config: Annotated[
        Path | None,
        typer.Option(
            callback=read_config,
            is_eager=True,
            help="A TOML file with these options by name; the command line wins.",
        ),
    ] = None


@taking(
    FitOptions,
    "gpclf fit sources.csv --label class -o sources.gpclf",
    "gpclf fit sources.csv --label class --errors-suffix _err --holdout 0.2",
    "gpclf fit sources.csv --label class --drop name --cv 5 --json",
    "gpclf fit sources.csv --label class --checkpoint sources.ckpt --resume",
    "gpclf fit sources.csv --config fit.toml",
)
def fit(wanted: FitOptions) -> None:
    """Learn a model from a table: DATA has a row for each case, and a column with its class."""
    check(wanted)
    voice, clock = wanted.voice, console.Clock()
    make = maker(wanted)
    data = read(wanted, wanted.data)
    tell(wanted, data)
    clf, used, found = learned(wanted, data, make)
    for name, scores in found.items():
        voice.show(scoring.table(scores, f"Scores on {name}"), stderr=wanted.json)
    notes = notes_of(wanted, data, used, found)
    clf.save(wanted.output, notes)
    if wanted.checkpoint is not None:
        wanted.checkpoint.unlink()
    if wanted.json:
        typer.echo(scoring.printed({**notes, "output": str(wanted.output)}))
    voice.note(f"{wanted.output}: learned from {len(used.y):,} rows in {clock}, {clf.stopped_}.")


def check(wanted: FitOptions) -> None:
    """What is wrong with the options alone, before the table is read."""
    check_place(wanted.output, "--output")
    if wanted.holdout is not None and wanted.cv is not None:
        raise Mistake("--holdout and --cv are two ways to score: give one of them.")
    if wanted.holdout is not None and not 0 < wanted.holdout < 1:
        raise Mistake(f"--holdout must be between 0 and 1, got {wanted.holdout:g}.")
    if wanted.cv is not None and wanted.cv < 2:
        raise Mistake(f"--cv must be at least 2, got {wanted.cv}.")
    check_checkpoint(wanted)
    check_learning(wanted)


def check_checkpoint(wanted: FitOptions) -> None:
    """A place for a fit, and only one fit."""
    place = wanted.checkpoint
    if place is None:
        if wanted.resume:
            raise Mistake("--resume needs --checkpoint FILE, to go on from.")
        return
    check_place(place, "--checkpoint")
    if wanted.cv is not None:
        raise Mistake("--checkpoint keeps one fit, and --cv makes several: use --holdout.")
    if place.absolute() == wanted.output.absolute():
        raise Mistake("--checkpoint and --output are one file: name two.")
    if place.exists() and not wanted.resume:
        raise Mistake(f"{place} is there already: --resume goes on from it; or delete it.")


def check_learning(wanted: Learning) -> None:
    """Names of kernels, likelihoods and engines, and numbers."""
    if wanted.kernel is not None:
        kernel_from(wanted.kernel)
    for what, name, known in (
        ("likelihood", wanted.likelihood, [GUESSED, *LIKELIHOODS]),
        ("inference", wanted.inference, list(ENGINES)),
    ):
        if name not in known:
            raise Mistake(unknown(what, name, known))
    check_budget(wanted)


def check_budget(wanted: Budget) -> None:
    """Numbers that make no sense."""
    if wanted.max_seconds is not None and not wanted.max_seconds > 0:
        raise Mistake(f"--max-seconds must be above 0, got {wanted.max_seconds:g}.")
    _count("--n-inducing", wanted.n_inducing, ("all",))
    _count("--max-epochs", wanted.max_epochs)


def _count(option: str, text: str, words: tuple[str, ...] = ()) -> Any:
    """A number as text, "auto", or None for "all"."""
    if text == GUESSED:
        return GUESSED
    if text in words:
        return None
    if not text.isdecimal() or int(text) < 1:
        others = " or ".join((GUESSED, *words))
        raise Mistake(f"{option} must be a whole number of at least 1, or {others}, got {text!r}.")
    return int(text)


def maker(wanted: Learning) -> scoring.Make:
    """A classifier with these options, from a callback."""
    return partial(classifier, wanted, wanted.likelihood, wanted.kernel, wanted.inference)


def classifier(
    wanted: Budget, likelihood: str, kernel: str | None, inference: str, callback: Any = None
) -> GPClassifier:
    """One that has not learned yet."""
    return GPClassifier(
        likelihood,
        kernel,
        _count("--n-inducing", wanted.n_inducing, ("all",)),
        inference=inference,
        max_epochs=_count("--max-epochs", wanted.max_epochs),
        max_seconds=wanted.max_seconds,
        random_state=wanted.seed,
        callback=callback,
    )


def read(wanted: Any, data: str) -> Training:
    """The whole table; `wanted` has options of columns."""
    table = source(data, wanted)
    blocks = []
    with wanted.voice.bar(f"reading {table.name}") as stage:
        for block in table.blocks():
            blocks.append(block)
            stage(table.meter.share)
        rows = concatenated(blocks) if blocks else None
        if rows is None or rows.num_rows == 0:
            raise Mistake(f"{table.name} has a header but no rows.")
        stage(1.0, "looking at the columns")
        return prepared(rows, wanted.roles, table.name)


def tell(wanted: FitOptions, data: Training) -> None:
    """What each column is taken for, before minutes go by."""
    classes = scoring.class_counts(data.y)
    some = ", ".join(f"{name} {count:,}" for name, count in list(classes.items())[:8])
    more = ", …" if len(classes) > 8 else ""
    voice = wanted.voice
    voice.note(f"{len(data.y):,} rows, label {wanted.label!r}: {some}{more}")
    if data.unlabelled:
        voice.note(f"{data.unlabelled:,} rows without a label are left out.")
    rows = [_line(each, data) for each in data.findings]
    headings = ("column", "taken as", "distinct", "missing", "note")
    voice.show(console.table(headings, rows, ("distinct", "missing")), stderr=True)
    suffix = _like_errors(data)
    if suffix is not None:
        text = f"Columns that end in {suffix} may be measurement errors: --errors-suffix {suffix}"
        voice.note(f"{text} takes them as such.")
    for each in data.findings:
        if "gives the label away" in each.note:
            voice.warn(f"Warning: column {each.name!r} {each.note}.")


def _like_errors(data: Training) -> str | None:
    """How names of features end that other features' names begin like, as of their errors."""
    names = {name for name, kind in data.layout.features if kind == NUMBER}
    pairs = ((name + suffix, suffix) for name in names for suffix in ERROR_SUFFIXES)
    return next((suffix for whole, suffix in pairs if whole in names), None)


def _line(found: Finding, data: Training) -> tuple[Any, ...]:
    name, kind, distinct, missing, note = found.row
    if found.name in data.layout.errors and not found.out:
        note = "; ".join(part for part in (f"± {data.layout.errors[found.name]}", note) if part)
    style = "dim" if found.out else ""
    return tuple(Text(part, style=style) for part in (name, kind, distinct, missing, note))


def learned(
    wanted: FitOptions, data: Training, make: scoring.Make
) -> tuple[Any, Training, dict[str, Any]]:
    """The model, the rows that it learned from, and scores by the way they were found."""
    _, index = np.unique(data.y, return_inverse=True)
    how, others = (index, wanted.seed, data.group, data.time), USUAL if wanted.rivals else ()
    if wanted.holdout is not None:
        split = holdout(wanted.holdout, *how)
        used = data.part(split.train)
        clf = _fitted(wanted, used, make)
        with wanted.voice.bar("scoring") as stage:
            found = scoring.held_out(clf, data, split, others, wanted.seed, stage)
        name = f"{len(split.test):,} rows held out{_how(wanted)}"
        return clf, used, {name: found.scores()}
    scores = {}
    if wanted.cv is not None:
        methods = {scoring.OURS: make, **dict.fromkeys(others)}
        with wanted.voice.bar("scoring") as stage:
            found = scoring.out_of_fold(data, folds(wanted.cv, *how), methods, wanted.seed, stage)
        scores = {f"{len(found.y):,} rows in {wanted.cv} folds{_how(wanted)}": found.scores()}
    return _fitted(wanted, data, make), data, scores


def _fitted(wanted: FitOptions, used: Training, make: scoring.Make) -> GPClassifier:
    rows = used.rows
    kept = {"checkpoint": wanted.checkpoint, "resume": wanted.resume}
    with wanted.voice.fitting() as draw, stopping(wanted.checkpoint):
        return make(draw).fit(rows.X, used.y, sample_weight=rows.weight, X_std=rows.X_std, **kept)


@contextmanager
def stopping(checkpoint: Path | None) -> Iterator[None]:
    """A scope of a fit whose interruption says what is left of it."""
    try:
        yield
    except KeyboardInterrupt:
        if checkpoint is None:
            raise
        raise KeyboardInterrupt(f"--resume goes on from {checkpoint}.") from None


def _how(wanted: FitOptions) -> str:
    if wanted.group is not None:
        return f", whole groups by {wanted.group}"
    return "" if wanted.time is None else f", the latest by {wanted.time}"


def notes_of(
    wanted: FitOptions, data: Training, used: Training, found: dict[str, Any]
) -> dict[str, Any]:
    """What a model file says of its making."""
    label = data.layout.label
    assert label is not None
    columns = [asdict(each) for each in data.findings]
    settings = {k: v for k, v in asdict(wanted).items() if k not in NO_SETTINGS and v is not None}
    return {
        "gpclf": __version__,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "data": Path(wanted.data).name,
        "rows": len(used.y),
        "unlabelled": data.unlabelled,
        "label": {"name": label[0], "kind": label[1], "classes": scoring.class_counts(used.y)},
        "features": [each for each in columns if not each["out"]],
        "dropped": [{"name": c["name"], "why": c["note"]} for c in columns if c["out"]],
        "errors": data.layout.errors,
        "settings": settings,
        "scores": {name: scoring.as_json(scores) for name, scores in found.items()},
    }
