"""What docs/command.md shows is what the commands say."""

import re

import pytest

from command.transcript import commands, prepare, said

NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e-?\d+)?")
# of another machine or another day: seconds, bytes, when it was made
OWN = re.compile(r"in \d+\.\d s|\d+ kB|\d{4}-\d\d-\d\dT[\d:+]+|lengthscale=\[[^\]]*\]")
NEAR = 0.02


def test_what_the_page_shows_is_what_the_commands_say(tmp_path, monkeypatch):
    prepare(tmp_path)
    monkeypatch.chdir(tmp_path)
    shown = commands()
    assert {words.split()[1] for words, _ in shown if words.startswith("gpclf")} == {
        *("fit", "evaluate", "report", "predict", "info")
    }
    for command, wanted in shown:
        found = OWN.sub("…", said(command))
        wanted = OWN.sub("…", wanted)
        layout = [" ".join(NUMBER.sub("0", text).split()) for text in (found, wanted)]
        assert layout[0] == layout[1], command
        numbers = [[float(n) for n in NUMBER.findall(text)] for text in (found, wanted)]
        assert numbers[0] == pytest.approx(numbers[1], abs=NEAR, rel=NEAR), command
