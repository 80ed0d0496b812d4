"""`gpclf fit --checkpoint`: killed, stopped, and gone on from."""

import os
from pathlib import Path

import jax
import numpy as np
import pytest

from command.conftest import QUICK, run
from gpclf import GPClassifier
from gpclf.estimators import checkpoints
from gpclf.inference import history, journal

FIT = ("fit", "sources.csv", "--label", "class", "--drop", "name", "--no-rivals", "-q", *QUICK)
KEPT = ("--checkpoint", "run.ckpt")


@pytest.fixture
def stopped(here, monkeypatch):
    """Ctrl-C in the middle of a fit whose every unit is kept."""
    with monkeypatch.context() as patch:
        patch.setattr(journal, "STEP", 0.0)
        patch.setattr(journal, "STAGE", 0.0)
        patch.setattr(os, "fsync", lambda file: None)
        count, note = iter(range(8)), history.History.note

        def pressed(*arguments, **named):
            if next(count) == 7:
                raise KeyboardInterrupt
            return note(*arguments, **named)

        patch.setattr(history.History, "note", pressed)
        return run(*FIT, *KEPT, "-o", "stopped.gpclf")


def test_a_fit_that_was_stopped_goes_on_to_the_same_model(stopped):
    assert stopped.exit_code == 130
    assert stopped.stderr == "Stopped: --resume goes on from run.ckpt.\n"
    assert not Path("stopped.gpclf").exists()
    result = run(*FIT, *KEPT, "--resume", "-o", "kept.gpclf")
    assert (result.exit_code, result.output) == (0, "")
    assert not Path("run.ckpt").exists()
    assert run(*FIT, "-o", "plain.gpclf").exit_code == 0
    kept, plain = (GPClassifier.load(name) for name in ("kept.gpclf", "plain.gpclf"))
    for mine, other in zip(*map(jax.tree.leaves, (kept.posterior_, plain.posterior_)), strict=True):
        np.testing.assert_array_equal(mine, other)
    assert "resume" not in kept.notes_["settings"]


def mistaken(sentence, *arguments):
    before = Path("run.ckpt").read_bytes()
    result = run(*FIT, *KEPT, *arguments, "-o", "other.gpclf")
    assert result.exit_code == 2
    assert sentence in result.stderr
    assert result.stderr.count("\n") == 1
    assert Path("run.ckpt").read_bytes() == before
    assert not Path("other.gpclf").exists()


def test_another_fit_is_refused_in_one_sentence(stopped, monkeypatch):
    mistaken("run.ckpt is there already: --resume goes on from it; or delete it.")
    mistaken("with random_state=0, not 1", "--resume", "--seed", "1")
    mistaken("the entries of X differ", "--resume", "--holdout", "0.2")
    monkeypatch.setattr(checkpoints, "version", lambda name: "9.9")
    mistaken("and this is 9.9", "--resume")
    Path("run.ckpt").write_bytes(Path("run.ckpt").read_bytes()[:-9])
    mistaken("run.ckpt is damaged", "--resume")


def test_options_that_make_no_sense_together(here):
    for sentence, *options in (
        ("--resume needs --checkpoint FILE", "--resume"),
        ("and --cv makes several", *KEPT, "--cv", "3"),
        ("are one file: name two", "--checkpoint", "./other.gpclf"),
        ("There is no folder none", "--checkpoint", "none/run.ckpt"),
    ):
        result = run(*FIT, "-o", "other.gpclf", *options)
        assert result.exit_code == 2
        assert sentence in result.stderr
    assert not Path("run.ckpt").exists()
