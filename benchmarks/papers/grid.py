"""Many fits, one JSON line each: what the file holds already is not fitted again."""

import json
import time
from collections.abc import Callable
from pathlib import Path

RESULTS = Path(__file__).parents[1] / "results"


class Grid:
    """Results by what they are of; with `resume` those of earlier runs count."""

    def __init__(self, name: str, resume: bool):
        self.path = RESULTS / name
        self.path.parent.mkdir(exist_ok=True)
        self.known: dict[str, dict] = {}
        if resume and self.path.is_file():
            for line in self.path.read_text().splitlines():
                entry = json.loads(line)
                self.known[self._key(entry["of"])] = entry["found"]

    @staticmethod
    def _key(of: dict) -> str:
        return json.dumps(of, sort_keys=True)

    def cell(self, of: dict, run: Callable[[], dict]) -> dict:
        """The result of `run`, or the one that is known."""
        key = self._key(of)
        if key not in self.known:
            found = self.known[key] = run()
            when = time.strftime("%Y-%m-%dT%H:%M:%S")
            with self.path.open("a") as file:
                file.write(json.dumps({"when": when, "of": of, "found": found}) + "\n")
            values = "  ".join(f"{name} {value:.4f}" for name, value in found.items())
            print(f"{'  '.join(str(part) for part in of.values()):<50} {values}", flush=True)
        return self.known[key]


def table(headings: list[str], rows: list[list[str]]) -> None:
    """Print as Markdown, the first column to the left."""
    print("\n| " + " | ".join(headings) + " |")
    print("| --- |" + " ---: |" * (len(headings) - 1))
    for row in rows:
        print("| " + " | ".join(row) + " |")
