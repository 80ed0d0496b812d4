"""The commands that docs/command.md shows, run again.

`python tests/command/transcript.py` writes the page anew with what the commands say today.
"""

import os
import re
import shlex
import sys
import tempfile
from importlib.resources import files
from pathlib import Path

from typer.testing import CliRunner

PAGE = Path(__file__).parents[2] / "docs" / "command.md"
CONSOLE = re.compile(r"```console\n(.*?)```", re.DOTALL)
TRAINING, NEW = 200, 100  # rows


def prepare(folder):
    """sources.csv, new.csv and fit.toml, as the page describes them."""
    header, *body = files("gpclf.cli").joinpath("sources.csv").read_text().splitlines()
    (folder / "sources.csv").write_text("\n".join([header, *body[:TRAINING]]) + "\n")
    new = body[TRAINING : TRAINING + NEW]
    (folder / "new.csv").write_text("\n".join([header, *new]) + "\n")
    settings = re.search(r"```toml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert settings is not None
    (folder / "fit.toml").write_text(settings[1])


def commands():
    """Those of the page, in order, and what it says they print."""
    found = []
    for shown in CONSOLE.findall(PAGE.read_text()):
        for line in shown.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            else:
                found[-1][1].append(line)
    return [(command, "\n".join(lines).strip("\n")) for command, lines in found]


def said(command):
    """What a command prints; lines end where their text does."""
    words = shlex.split(command)
    if words[0] == "head":
        return "\n".join(Path(words[2]).read_text().splitlines()[: int(words[1][1:])])
    from gpclf.cli import app

    result = CliRunner().invoke(app, words[1:])
    text = "\n".join(line.rstrip() for line in result.output.splitlines()).strip("\n")
    return text if result.exit_code == 0 else f"{text}\n[exit code {result.exit_code}]"


def main():
    page = PAGE.read_text()
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        prepare(Path(folder))
        os.chdir(folder)

        def again(shown):
            asked = [line for line in shown[1].splitlines() if line.startswith("$ ")]
            parts = [f"{line}\n{said(line[2:])}\n" for line in asked]
            return "```console\n" + "\n".join(parts) + "```"

        page = CONSOLE.sub(again, page)
        os.chdir(before)
    PAGE.write_text(page)


if __name__ == "__main__":
    sys.exit(main())
