"""A progress bar for people who asked for one."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Task, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bar
from rich.text import Text

from gpclf.estimators.notebook_bar import NotebookBar, in_notebook
from gpclf.inference.history import Progress

ALMOST = 0.99  # of the bar is as far as a fit gets that goes on


class Remaining(TimeRemainingColumn):
    """The time left; "…" where the work that was planned is done, and the fit goes on."""

    def render(self, task: Task) -> Text:
        """It, as the user reads it."""
        if task.completed >= ALMOST and not task.finished:
            return Text("…", style="progress.remaining")
        return super().render(task)


def bar_of(*columns: Any, transient: bool, console: Console | None = None) -> Bar:
    """A bar where output goes: a notebook, a terminal or a file."""
    if console is None and in_notebook():
        return NotebookBar(*columns, transient=transient)
    return Bar(*columns, transient=transient, console=console)


class Drawing:
    """The bar of one fit: call it with each step, and let it `finish` when the fit is over."""

    def __init__(self, verbose: int, console: Console | None = None):
        self.bar = bar_of(
            TextColumn("{task.description:>16}"),
            BarColumn(),
            TextColumn("ELBO per row {task.fields[elbo]:+.4f}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            Remaining(),
            transient=verbose < 2,
            console=console,
        )
        self._task = self.bar.add_task("starting", total=1.0, elbo=float("nan"))

    def __call__(self, line: Any) -> None:
        """Where a fit is: `Progress`, or a snapshot of it."""
        done = min(line.share, ALMOST)  # a full bar would also stop the clock
        self.bar.update(self._task, description=line.stage, completed=done, elbo=line.elbo)

    def finish(self) -> None:
        """A full bar."""
        self.bar.update(self._task, completed=1.0)


@contextmanager
def shown(verbose: int) -> Iterator[Callable[[Progress], None]]:
    """A function that draws each step of a fit, or does nothing if `verbose` is 0."""
    if not verbose:
        yield lambda line: None
        return
    drawing = Drawing(verbose)
    with drawing.bar:
        yield drawing
        drawing.finish()


@contextmanager
def stages(verbose: int, told: Callable[[str, float], None] | None) -> Iterator[Callable]:
    """A function of a stage and the share of work done: the user's own, a bar, or silence."""
    if told is not None or not verbose:
        yield told or (lambda stage, done: None)
        return
    columns = (TextColumn("{task.description:>22}"), BarColumn(), TimeElapsedColumn())
    with bar_of(*columns, TextColumn("left"), Remaining(), transient=verbose < 2) as bar:
        task = bar.add_task("starting", total=1.0)
        yield lambda stage, done: bar.update(task, description=stage, completed=done)
