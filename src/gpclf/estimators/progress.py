"""A progress bar for people who asked for one."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from gpclf.inference.journal import Progress


@contextmanager
def shown(verbose: int) -> Iterator[Callable[[Progress], None]]:
    """A function that draws each step of a fit, or does nothing if `verbose` is 0."""
    if not verbose:
        yield lambda line: None
        return
    columns = (
        TextColumn("{task.description:>16}"),
        BarColumn(),
        TextColumn("ELBO per row {task.fields[elbo]:+.4f}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Bar(*columns, transient=verbose < 2) as bar:
        task = bar.add_task("starting", total=1.0, elbo=float("nan"))

        def draw(line: Progress) -> None:
            bar.update(task, description=line.stage, completed=line.share, elbo=line.elbo)

        yield draw
