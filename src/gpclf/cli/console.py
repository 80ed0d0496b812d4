"""What a person sees: lines and tables, colours and bars on a terminal only."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from gpclf.estimators.progress import Drawing, Remaining

WIDTH = 100  # of what goes into a file or another program


Stage = Callable[..., None]  # called with the share of the work that is done, and what it is


@dataclass(frozen=True)
class Voice:
    """How much is said: results on standard output, all else on standard error."""

    quiet: bool = False
    verbose: bool = False

    def note(self, text: str, style: str | None = None) -> None:
        """A line for a person, unless quiet."""
        if not self.quiet:
            console(stderr=True).print(Text(text, style=style or ""), soft_wrap=True)

    def warn(self, text: str) -> None:
        """A line that is said even when quiet."""
        console(stderr=True).print(Text(text, style="yellow"), soft_wrap=True)

    def detail(self, text: str) -> None:
        """A line for those who want to know more."""
        if self.verbose:
            self.note(text, "dim")

    def show(self, table: Table, stderr: bool = False) -> None:
        """A table; on standard error only if not quiet."""
        if not (stderr and self.quiet):
            console(stderr=stderr).print(table)

    @contextmanager
    def bar(self, what: str) -> Iterator[Stage]:
        """A bar on a terminal, that vanishes; its work tells how far it is, if it knows."""
        target = console(stderr=True)
        shown = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            Remaining(),
            console=target,
            transient=True,
            disable=self.quiet or not target.is_terminal,
        )
        task = shown.add_task(what, total=None)
        with shown:
            yield _Told(shown, task)

    @contextmanager
    def fitting(self, title: str = "") -> Iterator[Any]:
        """A function for `GPClassifier(callback=…)` that draws a fit, or None."""
        target = console(stderr=True)
        if self.quiet or not target.is_terminal:
            yield None
            return
        if title:
            self.note(title, "dim")
        drawing = Drawing(1, target)
        with drawing.bar:
            yield drawing


@dataclass(frozen=True)
class _Told:
    shown: Progress
    task: TaskID

    def __call__(self, share: float | None = None, what: str | None = None) -> None:
        if what is not None:
            self.shown.update(self.task, description=what)
        if share is not None:
            self.shown.update(self.task, total=1.0, completed=share)


def console(stderr: bool = False) -> Console:
    """The terminal, or what stands for it, as it is now."""
    stream = sys.stderr if stderr else sys.stdout
    found = Console(file=stream, highlight=False, markup=False, emoji=False)
    return (
        found
        if found.is_terminal
        else Console(file=stream, highlight=False, markup=False, emoji=False, width=WIDTH)
    )


def table(
    headings: Sequence[str], rows: Sequence[Sequence[Any]], numbers: Sequence[str] = (), **look: Any
) -> Table:
    """Cells as they are: a name with brackets in it is no style."""
    drawn = Table(
        box=SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        title_justify="left",
        title_style="bold",
        **look,
    )
    for heading in headings:
        right = heading in numbers
        drawn.add_column(Text(heading), justify="right" if right else "left", no_wrap=right)
    for row in rows:
        drawn.add_row(*(each if isinstance(each, Text) else Text(str(each)) for each in row))
    return drawn


class Clock:
    """Seconds since it was made, in words."""

    def __init__(self) -> None:
        self.began = perf_counter()

    def __str__(self) -> str:
        seconds = perf_counter() - self.began
        return f"{seconds:.1f} s" if seconds < 100 else f"{seconds / 60:.1f} min"
