"""Processes that are killed in the middle of a fit, and others that go on from what they left."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from test_checkpoint import probabilities, whole

HERE = Path(__file__).parent
FIT = """
import os, signal, sys
import numpy as np
way, place, end, after, *folders = sys.argv[1:]
sys.path[:0] = folders
from gpclf.estimators import checkpoints
from gpclf.inference import journal
from test_checkpoint import fitted, probabilities

journal.STAGE = journal.STEP = 0.0
journal.SHARE = np.inf
saved, real = [], checkpoints.Kept._save

def save(self, theta, past):
    real(self, theta, past)
    saved.append(0)
    if len(saved) == int(after):
        os.kill(os.getpid(), signal.SIGKILL)

checkpoints.Kept._save = save
np.save(end, probabilities(way, fitted(way, checkpoint=place, resume=True)))
"""
MOMENTS = 20
ROUNDS = ["selection", "engine PowerEP", "engine Decoupled", "gradient on batches"]
ROUNDS += ["selection, many classes"]


def process(way, folder, after=0):
    """One that fits; after so many savings it kills itself, if that is not 0."""
    arguments = [way, folder / "run.ckpt", folder / "end.npy", after, HERE, HERE.parent]
    command = [sys.executable, "-c", FIT, *map(str, arguments)]
    return subprocess.Popen(command, env=os.environ | {"GPCLF_CACHE": str(folder / "programs")})


def same_bits(way, folder):
    end = np.load(folder / "end.npy")
    np.testing.assert_array_equal(end, probabilities(way, whole(way)))


def test_another_process_goes_on_from_one_that_was_killed(tmp_path):
    assert process("selection", tmp_path, after=40).wait() == -signal.SIGKILL
    assert not (tmp_path / "end.npy").exists()
    assert process("selection", tmp_path).wait() == 0
    same_bits("selection", tmp_path)


@pytest.mark.slow
def test_killed_at_twenty_random_moments_fits_end_with_the_same_bits(tmp_path):
    rng, killed, took = random.Random(0), 0, {}
    while killed < MOMENTS:
        way = ROUNDS[killed % len(ROUNDS)]
        folder = tmp_path / way
        if way not in took:
            folder.mkdir()
            took[way] = [seconds_of(way, folder) for _ in range(2)][-1]  # of compiled programs
        fit = process(way, folder)
        wait_for(folder / "run.ckpt", fit)
        time.sleep(took[way] * rng.random())
        fit.kill()
        killed += fit.wait() == -signal.SIGKILL  # else it had ended
        assert process(way, folder).wait() == 0
        same_bits(way, folder)
        clean(folder)


def seconds_of(way, folder):
    """How long a whole fit takes from its first writing on."""
    fit = process(way, folder)
    wait_for(folder / "run.ckpt", fit)
    began = time.perf_counter()
    assert fit.wait() == 0
    same_bits(way, folder)
    clean(folder)
    return time.perf_counter() - began


def wait_for(path, fit):
    while not path.exists() and fit.poll() is None:
        time.sleep(0.01)


def clean(folder):
    for name in ("run.ckpt", "end.npy"):
        (folder / name).unlink()
