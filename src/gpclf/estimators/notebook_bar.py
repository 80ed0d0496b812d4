"""A bar of Rich's in a notebook, without the widgets that Rich itself would ask for.

It is one output of the cell, which is written anew a few times a second.
"""

import io
from time import perf_counter
from typing import Any

from rich.console import Console
from rich.progress import Progress, TaskID

EVERY = 0.25  # seconds between two pictures
WIDTH = 100
FORMAT = '<pre style="white-space:pre;overflow-x:auto;line-height:normal">{code}</pre>'


def in_notebook() -> bool:
    """Whether output goes to the cell of a notebook."""
    return Console().is_jupyter


class NotebookBar(Progress):
    """The same columns and calls as Rich's bar."""

    def __init__(self, *columns: Any, transient: bool = False, **_: Any):
        super().__init__(*columns, transient=transient, auto_refresh=False)
        self._transient, self._drawn = transient, 0.0
        self._output: Any = None

    def start(self) -> None:
        """An empty output below the cell."""
        from IPython.display import display  # type: ignore  # where there is a notebook, it is

        self._output = display(self._picture(), raw=True, display_id=True)

    def update(self, task_id: TaskID, **changes: Any) -> None:
        """Drawn at once only if the last picture is old."""
        super().update(task_id, **changes)
        if perf_counter() - self._drawn > EVERY:
            self.refresh()

    def refresh(self) -> None:
        """The bar as it is now."""
        if self._output is not None:
            self._drawn = perf_counter()
            self._output.update(self._picture(), raw=True)

    def stop(self) -> None:
        """The last picture, or none."""
        if self._output is not None:
            last = {"text/plain": "", "text/html": ""} if self._transient else self._picture()
            self._output.update(last, raw=True)
            self._output = None

    def _picture(self) -> dict[str, str]:
        console = Console(
            file=io.StringIO(), record=True, width=WIDTH, force_terminal=True, force_jupyter=False
        )
        console.print(self.get_renderable())
        html = console.export_html(inline_styles=True, code_format=FORMAT, clear=False)
        return {"text/plain": console.export_text().rstrip(), "text/html": html}
