"""`gpclf predict`: classes, probabilities and what is not known, row by row into a file."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import pyarrow as pa
import typer

from gpclf.cli.errors import Mistake
from gpclf.cli.models import Opened, layout_of, open_model
from gpclf.cli.options import Common, Reading, names, taking
from gpclf.cli.sources import source
from gpclf.cli.tables import Rows, blocks, listed
from gpclf.data.sources.writers import SUFFIXES, writer
from gpclf.data.sources.writing import check_place, replaced
from gpclf.estimators.scored import names_of_scores, scores_of

TO_STANDARD_OUTPUT = Path("-")


@dataclass(frozen=True, kw_only=True)
class PredictOptions(Common, Reading):
    """The options of `gpclf predict`."""

    _panel: ClassVar[str] = "Options"

    model: Annotated[str, typer.Argument(help="A model file.")]
    data: Annotated[str, typer.Argument(help="A file, a folder of files, or - for standard input.")]
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", help="A file (.parquet, .csv, .jsonl, .arrow); - prints CSV."
        ),
    ] = TO_STANDARD_OUTPUT
    proba_columns: Annotated[
        str, typer.Option(help="The classes whose probabilities to write: all, none, or a list.")
    ] = "all"
    uncertainty: Annotated[
        bool, typer.Option(help="Write what is not known, and its two parts, in nats.")
    ] = True
    keep: Annotated[
        str | None, typer.Option(help="Columns of the table to write first, as an identifier.")
    ] = None
    typical_errors: Annotated[
        bool,
        typer.Option(
            "--typical-errors", help="Take the usual measurement errors, not columns of the table."
        ),
    ] = False


@taking(
    PredictOptions,
    "gpclf predict sources.gpclf new.csv -o scores.parquet --keep name",
    "gpclf predict sources.gpclf new.csv --proba-columns pulsar --no-uncertainty",
    "cat new.csv | gpclf predict sources.gpclf - -o scores.jsonl",
)
def predict(wanted: PredictOptions) -> None:
    """Write the class, the probabilities and the uncertainty of every row.

    Rows are read, predicted and written in blocks, so that memory does not grow with the table. The
    uncertainty is the entropy of the class: its data part remains however many rows are labelled,
    its model part would go with labels nearby.
    """
    if wanted.output != TO_STANDARD_OUTPUT:
        if wanted.output.suffix.lower() not in SUFFIXES and not _is_device(wanted.output):
            raise Mistake(f"--output must end in {', '.join(SUFFIXES)}, got {wanted.output}.")
        check_place(wanted.output, "--output")
    opened = open_model(wanted.model)
    chosen = classes_of(wanted, opened)
    done = 0
    with _target(wanted) as write, wanted.voice.bar("predicting") as stage:
        for block in predictions(wanted, opened, chosen, stage):
            write(block)
            done += block.num_rows
            stage(None, f"predicting, {done:,} rows")
    if wanted.output != TO_STANDARD_OUTPUT:
        wanted.voice.note(f"{wanted.output}: {done:,} rows.")


def classes_of(wanted: PredictOptions, opened: Opened) -> list[int]:
    """The places of the classes whose probabilities are written."""
    known = [str(name) for name in opened.clf.classes_]
    if wanted.proba_columns == "none":
        return []
    if wanted.proba_columns == "all":
        return list(range(len(known)))
    asked = names(wanted.proba_columns)
    strange = [name for name in asked if name not in known]
    if strange:
        raise Mistake(
            f"--proba-columns names {strange[0]!r}, which is no class of {opened.path}: they are "
            f"{', '.join(known)}."
        )
    return [known.index(name) for name in asked]


def predictions(
    wanted: PredictOptions, opened: Opened, chosen: list[int], stage: Any
) -> Iterator[pa.Table]:
    """Block by block what is written."""
    data, keep = source(wanted.data, wanted), names(wanted.keep)
    layout = layout_of(opened, data)
    if wanted.typical_errors:
        layout.errors.clear()
    twice = [name for name in keep if name in names_of_scores(opened.clf.classes_)]
    if twice:
        raise Mistake(f"--keep names {listed(twice)}, which predictions have themselves.")
    for rows in blocks(data, layout, keep):
        yield predicted(opened, rows, keep, chosen, wanted.uncertainty)
        stage(data.meter.share)


def predicted(
    opened: Opened, rows: Rows, keep: list[str], chosen: list[int], uncertainty: bool
) -> pa.Table:
    """A block of what is written."""
    clf, X = opened.clf, opened.takes(rows.X)
    if uncertainty:
        logs, parts = clf.predict_log_proba_and_uncertainty(X, X_std=rows.X_std)
    else:
        logs, parts = clf.predict_log_proba(X, X_std=rows.X_std), None
    return scores_of(clf.classes_, logs, parts, {name: rows.block[name] for name in keep}, chosen)


@contextmanager
def _target(wanted: PredictOptions) -> Iterator[Callable[[pa.Table], None]]:
    """Where blocks go: standard output, or a file that is there when all is done."""
    if wanted.output == TO_STANDARD_OUTPUT:
        with writer(None, ".csv") as write:
            yield write
        return
    with (
        replaced(wanted.output) as place,
        writer(place, _suffix(wanted.output)) as write,
    ):
        yield write


def _suffix(path: Path) -> str:
    """That of its name; a device or a pipe gets CSV."""
    return ".csv" if _is_device(path) else path.suffix.lower()


def _is_device(path: Path) -> bool:
    return path.exists() and not path.is_file() and not path.is_dir()
