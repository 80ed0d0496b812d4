"""`gpclf report`: one page about a model and a table, for people who pass it on."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

import typer

from gpclf.cli.errors import Mistake
from gpclf.cli.models import Opened, index_of, layout_of, open_model
from gpclf.cli.options import Common, Reading, taking
from gpclf.cli.sources import Source, source
from gpclf.cli.tables import Layout, check_columns, whole
from gpclf.data.sources.writing import check_place, replaced

SUFFIXES = (".html", ".htm")


@dataclass(frozen=True, kw_only=True)
class ReportOptions(Common, Reading):
    """The options of `gpclf report`."""

    _panel: ClassVar[str] = "Options"

    model: Annotated[str, typer.Argument(help="A model file.")]
    data: Annotated[str, typer.Argument(help="Rows that the model has not seen.")]
    output: Annotated[Path, typer.Option("--output", "-o", help="The page, an HTML file.")] = Path(
        "report.html"
    )
    label: Annotated[
        str | None, typer.Option("--label", "-l", help="The column of classes; else as at the fit.")
    ] = None
    no_label: Annotated[
        bool, typer.Option("--no-label", help="Leave labels aside: nothing is scored.")
    ] = False
    typical_errors: Annotated[
        bool,
        typer.Option(
            "--typical-errors", help="Take the usual measurement errors, not columns of the table."
        ),
    ] = False
    title: Annotated[str | None, typer.Option(help="The title of the page.")] = None
    date: Annotated[str | None, typer.Option(help="A date for below the title.")] = None
    seed: Annotated[
        int, typer.Option(min=0, max=2**32 - 1, help="Of intervals and of rows that are drawn.")
    ] = 0


@taking(
    ReportOptions,
    "gpclf report sources.gpclf new.csv -o report.html",
    "gpclf report sources.gpclf new.csv --title 'Which sources are pulsars?' --date 2030-01-31",
    "gpclf report sources.gpclf new.csv --no-label -o unlabelled.html",
)
def report(wanted: ReportOptions) -> None:
    """Write a page about a model and a table: one file that needs no network.

    How good the model is and whether its probabilities can be trusted, what matters and how, where
    it does not know, how far the table is from the training rows, and a model card. A table without
    the column of labels is not scored; all else is told. The same seed gives the same page.
    """
    if wanted.output.suffix.lower() not in SUFFIXES and not wanted.output.exists():
        raise Mistake(f"--output must end in {' or '.join(SUFFIXES)}, got {wanted.output}.")
    check_place(wanted.output, "--output")
    opened = open_model(wanted.model)
    table = source(wanted.data, wanted)
    layout = _layout(wanted, opened, table)
    with wanted.voice.bar(f"reading {table.name}") as stage:
        rows = whole(table, layout)
        if layout.label is not None:
            index_of(opened, rows, table.name)
        made = opened.clf.report(
            opened.takes(rows.X),
            rows.y,
            rows.X_std,
            title=wanted.title,
            date=wanted.date,
            seed=wanted.seed,
            progress=lambda what, done: stage(done, what),
        )
    with replaced(wanted.output) as place:
        place.write_bytes(made.html.encode())
    scored = "" if layout.label is not None else ", without labels: nothing is scored"
    wanted.voice.note(f"{wanted.output}: a report on {made.figures['n_rows']:,} rows{scored}.")


def _layout(wanted: ReportOptions, opened: Opened, table: Source) -> Layout:
    """The columns to read, with that of labels if the table has it or it was asked for."""
    label = None if wanted.no_label else wanted.label
    if label is None and not wanted.no_label and opened.label is not None:
        known = opened.label[0]
        whole_file = table.parts[0].path is not None
        label = known if not whole_file or known in table.columns else None
    layout = layout_of(opened, table, label)
    if wanted.typical_errors:
        layout.errors.clear()
    if table.parts[0].path is not None:
        check_columns(layout, table.columns, table.name)
    return layout
