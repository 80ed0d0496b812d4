"""Tables of many fits: each is printed when it is done, kept, and not done again on `--resume`."""

from collections.abc import Callable

from kept import FOLDER as RESULTS
from kept import Kept


class Grid(Kept):
    """The cells of a table, in a file of the results' folder."""

    def __init__(self, name: str, resume: bool):
        super().__init__(RESULTS / name, resume)

    def cell(self, of: dict, run: Callable[[], dict]) -> dict:
        """The result of `run`, or the one that is known."""
        new = self.find(of) is None
        found = {name: value for name, value in self.get(of, run).items() if name != "about"}
        if new:
            values = "  ".join(f"{name} {value:.4f}" for name, value in found.items())
            print(f"{'  '.join(str(part) for part in of.values()):<50} {values}", flush=True)
        return found


def table(headings: list[str], rows: list[list[str]]) -> None:
    """Print as Markdown, the first column to the left."""
    print("\n| " + " | ".join(headings) + " |")
    print("| --- |" + " ---: |" * (len(headings) - 1))
    for row in rows:
        print("| " + " | ".join(row) + " |")
