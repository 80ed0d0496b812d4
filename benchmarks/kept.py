"""Results of fits, one line of JSON each: a long benchmark can be stopped and resumed."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "results"


class Kept:
    """The fits of a file, each known by what it is about; without `resume` it begins empty."""

    def __init__(self, path: Path, resume: bool):
        self.path = path
        path.parent.mkdir(exist_ok=True)
        if not resume:
            path.unlink(missing_ok=True)
        lines = path.read_text().splitlines() if path.exists() else []
        self.records: dict[str, dict] = {}
        for line in lines:
            record = json.loads(line)
            self.records[_key(record["about"])] = record

    def get(self, about: dict[str, Any], run: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """What the file has about this, or what `run` finds, which is then written."""
        if _key(about) not in self.records:
            record = {"about": about, **run()}
            self.records[_key(about)] = record
            with self.path.open("a") as file:
                file.write(json.dumps(record) + "\n")
        return self.records[_key(about)]

    def forget(self, wanted: Callable[[dict[str, Any]], bool]) -> None:
        """Leave some out, to be run again; the file keeps them, and the last of a kind counts."""
        self.records = {key: each for key, each in self.records.items() if not wanted(each)}

    def find(self, about: dict[str, Any]) -> dict[str, Any] | None:
        """What the file has about this, if anything."""
        return self.records.get(_key(about))


def _key(about: dict[str, Any]) -> str:
    return json.dumps(about, sort_keys=True)
