"""L-BFGS between refreshes: downhill, within its limits, and with a memory that lasts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import rosen, rosen_der

from gpclf.inference.optim.lbfgs import LONGEST, Memory, descend

FREE = {"low": np.array(-np.inf), "high": np.array(np.inf)}


def bowl(seed, size, centre=0.0):
    """½(x − c)ᵀH(x − c), eigenvalues of H from 1e-2 to 1e2; keeps its values in `seen`."""
    rng = np.random.default_rng(seed)
    basis, _ = np.linalg.qr(rng.normal(size=(size, size)))
    H = basis * np.logspace(-2, 2, size) @ basis.T

    def objective(x):
        value = 0.5 * (x - centre) @ H @ (x - centre)
        objective.seen.append((value, x))
        return value, H @ (x - centre)

    objective.seen = []
    return objective


@given(seed=st.integers(0, 2**31), size=st.integers(1, 30), evaluations=st.integers(1, 60))
def test_never_up_and_never_more_evaluations(seed, size, evaluations):
    objective = bowl(seed, size)
    start = np.random.default_rng(seed).normal(size=size)
    end = descend(objective, start, Memory(), evaluations=evaluations, **FREE)
    assert len(objective.seen) == end.evaluations <= evaluations
    assert end.value == min(value for value, _ in objective.seen)
    assert end.value == objective(end.x)[0]


@given(seed=st.integers(0, 2**31), size=st.integers(1, 30))
def test_finds_the_bottom_of_a_bowl(seed, size):
    end = descend(bowl(seed, size, centre=1.5), np.zeros(size), Memory(), evaluations=1000, **FREE)
    assert end.value < 1e-8


def test_finds_the_end_of_a_bent_valley():
    end = descend(
        lambda x: (rosen(x), rosen_der(x)),
        np.array([-1.2, 1.0, -1.2, 1.0]),
        Memory(),
        evaluations=300,
        **FREE,
    )
    np.testing.assert_allclose(end.x, 1.0, atol=1e-4)


@given(seed=st.integers(0, 2**31))
def test_memory_outlives_the_function(seed):
    """Six evaluations on a bowl that has moved: far better with the memory of the first."""
    old, moved = bowl(seed, 6), bowl(seed, 6, centre=0.1)
    memory = Memory()
    start = descend(old, np.ones(6), memory, evaluations=60, **FREE).x
    kept = descend(moved, start, memory, evaluations=6, **FREE)
    fresh = descend(moved, start, Memory(), evaluations=6, **FREE)
    assert kept.value < 0.5 * fresh.value


@given(seed=st.integers(0, 2**31))
def test_a_wrong_memory_does_no_lasting_harm(seed):
    """It promises much along a way that leads up at once: few evaluations in a round, and still."""
    objective, memory = bowl(seed, 6, centre=1.0), Memory()
    rng = np.random.default_rng(seed)
    for _ in range(20):
        step = rng.normal(size=6)
        memory.learn(step, 1e-7 * step)
    x, start = np.zeros(6), objective(np.zeros(6))[0]
    for _ in range(40):
        x, value, _ = descend(objective, x, memory, evaluations=6, **FREE)
    assert value < 1e-4 * start


@given(
    seed=st.integers(0, 2**31), wall=st.floats(-0.5, 0.5), beyond=st.sampled_from([np.inf, np.nan])
)
def test_steps_back_from_what_is_no_number(seed, wall, beyond):
    inside = bowl(seed, 5, centre=2.0)

    def objective(x):
        return (beyond, np.full(5, np.nan)) if x[0] > wall else inside(x)

    start = np.full(5, -1.0)
    end = descend(objective, start, Memory(), evaluations=40, **FREE)
    assert end.value < inside(start)[0]
    assert end.x[0] <= wall


@given(seed=st.integers(0, 2**31))
def test_stays_between_its_bounds_and_steps_no_longer_than_stated(seed):
    objective = bowl(seed, 6, centre=50.0)
    low, high = np.full(6, -3.0), np.array([4.0, 4.0, 4.0, np.inf, np.inf, 0.0])
    descend(objective, np.zeros(6), Memory(), evaluations=30, low=low, high=high)
    places = np.array([x for _, x in objective.seen])
    assert np.all((places >= low) & (places <= high))
    assert np.all(places[:, 5] <= 0)
    best = np.minimum.accumulate([value for value, _ in objective.seen])
    for index in range(1, len(places)):  # from the best place so far
        origin = places[int(np.flatnonzero(best == best[index - 1])[0])]
        assert np.abs(places[index] - origin).max() <= LONGEST + 1e-12


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_start_without_a_number_ends_at_once(value):
    end = descend(lambda x: (value, x), np.ones(3), Memory(), evaluations=10, **FREE)
    assert end.evaluations == 1
