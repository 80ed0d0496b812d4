"""Labels, standardisation and rows: the same whatever the blocks, and no copy of X."""

import tracemalloc
import warnings

import jax
import numpy as np
import pytest
import sklearn
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.utils.fixes import parse_version

from gpclf import GPClassifier
from gpclf.data import ArrayRows, Scaling, blocks, encode, labels, refuse_missing, scaling, survey
from gpclf.estimators.tables import labelled_table

LABELS = st.one_of(
    hnp.arrays(np.int64, st.integers(2, 40), elements=st.integers(-3, 3)),
    hnp.arrays(np.dtype("<U2"), st.integers(2, 40), elements=st.sampled_from(["a", "b", "ab"])),
    hnp.arrays(np.bool_, st.integers(2, 40)),
)


def _in_small_blocks(patch):
    """Seven rows a block, so that small tables have several."""
    for module in (labels, scaling):
        patch.setattr(module, "blocks", lambda n_rows, size=None: blocks(n_rows, 7))
    patch.setattr(survey, "AT_ONCE", 7)


@given(y=LABELS)
def test_labels_come_back_from_their_indices(y):
    if len(np.unique(y)) < 2:
        with pytest.raises(ValueError, match="1 class only"):
            encode(y)
        return
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # many classes
        _in_small_blocks(patch)
        classes, index = encode(y)
    assert np.array_equal(classes, np.unique(y))
    assert np.array_equal(classes[index], y)


def test_many_classes_are_quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        encode(np.arange(100) % 26)


@pytest.mark.skipif(
    parse_version(sklearn.__version__) < parse_version("1.7"), reason="scikit-learn says nothing"
)
def test_too_many_classes_are_not():
    with pytest.warns(UserWarning, match="unique classes"):
        encode(np.arange(30))


@pytest.mark.parametrize("y", [np.array([1.0, np.nan, 2.0]), ["a", None, "b"]])
def test_a_missing_label_is_named(y):
    with pytest.raises(ValueError, match="missing label in row 1"):
        refuse_missing(y)


@given(seed=st.integers(0, 2**31), rows=st.integers(2, 40), dtype=st.sampled_from(["f4", "f8"]))
def test_standardised_rows_have_mean_zero_and_spread_one(seed, rows, dtype):
    rng = np.random.default_rng(seed)
    units = 10.0 ** rng.integers(-12, 12, 3)
    X = (units * (rng.normal(size=(rows, 3)) + rng.normal(size=3))).astype(dtype)
    weight = rng.uniform(0.1, 3.0, rows)
    with pytest.MonkeyPatch.context() as patch:
        _in_small_blocks(patch)
        found = Scaling.of(X, weight)
        scaled = found.forward(X)
    np.testing.assert_allclose(np.average(scaled, axis=0, weights=weight), 0, atol=1e-9)
    np.testing.assert_allclose(np.average(scaled**2, axis=0, weights=weight), 1, rtol=1e-9)
    np.testing.assert_allclose(found.backward(scaled), X, rtol=1e-6)


def test_no_overflow_and_a_constant_column_becomes_zero():
    X = np.array([[1e300, 1e-300, 7.0], [-1e300, 3e-300, 7.0], [0.0, 2e-300, 7.0]])
    found = Scaling.of(X, np.ones(3))
    scaled = found.forward(X)
    assert np.all(np.isfinite(scaled))
    assert np.all(scaled[:, 2] == 0)
    assert np.array_equal(found.backward(scaled)[:, 2], X[:, 2])


def test_rows_scaled_chunk_by_chunk_equal_rows_scaled_before():
    rng = np.random.default_rng(0)
    X, y, weight = 5 + 3 * rng.normal(size=(50, 4)), np.arange(50) % 3, rng.uniform(1, 2, 50)
    found = Scaling.of(X, weight)
    lazy = ArrayRows(X, y, weight, scaling=found, dtype="f4").in_chunks(16)
    eager = ArrayRows(found.forward(X).astype("f4"), y, weight.astype("f4")).in_chunks(16)
    parts = (
        lambda rows: [rows],
        lambda rows: rows.batches(16, np.random.default_rng(1)),
        lambda rows: [rows.sample(20, np.random.default_rng(2))],
    )
    for part in parts:
        one, other = ([c for some in part(rows) for c in some.chunks()] for rows in (lazy, eager))
        for here, there in zip(one, other, strict=True):
            for a, b in zip(jax.tree.leaves(here), jax.tree.leaves(there), strict=True):
                assert a.dtype == b.dtype
                np.testing.assert_allclose(a, b, rtol=1e-6)


def test_neither_scaling_nor_labels_nor_a_pass_copies_all_rows():
    X, y = np.random.default_rng(0).normal(size=(400_000, 10)), np.arange(400_000) % 3  # 32 MB
    tracemalloc.start()
    try:
        found = Scaling.of(X, np.broadcast_to(1.0, len(X)))
        _, index = encode(y)  # 1.6 MB to keep
        weight = np.broadcast_to(1.0, len(X))
        rows = ArrayRows(X, index, weight, scaling=found, dtype="f4").in_chunks(2048)
        for _ in rows.chunks():
            pass
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8e6


def test_small_numbers_in_a_file_are_not_copied_to_large_ones(tmp_path):
    shape = (400_000, 10)  # 8 MB in the file, 32 MB as float64
    X = np.memmap(tmp_path / "rows", np.int16, "w+", shape=shape)
    X[:] = np.random.default_rng(0).integers(-(2**15), 2**15, shape)
    y = np.arange(len(X)) % 3
    tracemalloc.start()
    try:
        rows, _, columns = labelled_table(GPClassifier(), X, y, "from_dtype")
        Scaling.of(rows, np.broadcast_to(1.0, len(X)), columns.counts)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert np.shares_memory(rows, X)
    assert peak < 8e6


@pytest.mark.parametrize("dtype", ["?", "i1", "u1", "<i2", ">i2", "u8", "f2", ">f4", "g"])
def test_rows_of_every_type_of_number_are_scaled_as_their_floats(dtype):
    least = 0 if dtype[0] in "?u" else -128  # whose absolute value int8 does not have
    numbers = np.random.default_rng(0).integers(least, 127, (50, 3))
    numbers[0] = least
    X = (numbers % 2 if dtype == "?" else numbers).astype(dtype)
    y = np.arange(50) % 2
    rows, _, _ = labelled_table(GPClassifier(), X, y, "from_dtype")
    found, wanted = (Scaling.of(Z, np.ones(50)) for Z in (rows, X.astype(np.float64)))
    for part, other in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        assert np.array_equal(part, other)
    assert np.array_equal(found.forward(rows), wanted.forward(X.astype(np.float64)))


def test_whole_numbers_predict_as_their_floats():
    X = np.random.default_rng(0).integers(-128, 128, (60, 3)).astype(np.int8)
    X[0] = -128
    y = X[:, 0] > 9
    quick = GPClassifier(n_inducing=15, max_epochs=8, random_state=0)
    probabilities = quick.fit(X, y).predict_proba(X)
    floats = X.astype(np.float64)
    assert np.array_equal(quick.predict_proba(floats), probabilities)
    assert np.array_equal(quick.fit(floats, y).predict_proba(floats), probabilities)
