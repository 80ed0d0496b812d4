"""Columns of levels: in frames of every kind, in arrays, and when a level is new or missing."""

import tracemalloc

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array, csr_matrix
from sklearn.impute import SimpleImputer

from gpclf import GPClassifier
from gpclf.data import Columns, Scaling
from gpclf.data.columns import chosen

QUICK = {"n_inducing": 15, "max_epochs": 8, "random_state": 0}


def _table(rows=120, seed=0):
    """A number, three kinds of levels, and labels that only the colour decides."""
    rng = np.random.default_rng(seed)
    colour = rng.choice(["blue", "green", "red", "yellow"], rows)
    data = {
        "size": rng.normal(size=rows),
        "colour": colour,
        "large": rng.random(rows) < 0.5,
        "shape": rng.choice(["disc", "star"], rows),
    }
    return data, np.where(np.isin(colour, ["red", "blue"]), "warm", "cold")


def _frames(data):
    pandas = pd.DataFrame(data)
    return {
        "pandas": pandas,
        "pandas category": pandas.astype({"colour": "category", "shape": "category"}),
        "polars": pl.DataFrame(data),
        "polars category": pl.DataFrame(data).with_columns(pl.col("colour").cast(pl.Categorical)),
    }


def test_levels_are_found_by_type_and_every_kind_of_frame_gives_the_same():
    data, y = _table()
    probabilities = {}
    for kind, frame in _frames(data).items():
        clf = GPClassifier(**QUICK).fit(frame, y)
        assert clf.inducing_points_.shape[1] == 1 + 4 + 1 + 1
        assert clf.relevance_.shape == (4,)
        assert np.argmax(clf.relevance_) == 1  # the colour
        assert clf.score(frame, y) > 0.95
        probabilities[kind] = clf.predict_proba(frame)
    for other in probabilities.values():
        np.testing.assert_array_equal(other, probabilities["pandas"])


def test_levels_named_by_index_name_or_mask_are_the_same_columns():
    data, _ = _table()
    frame = pd.DataFrame(data)
    names = list(frame.columns)
    for wanted in ([1, 3], ["shape", "colour"], [False, True, False, True], np.array([3, 1])):
        assert chosen(frame, wanted, names) == [1, 3]
    assert chosen(frame, None, names) == []
    assert chosen(frame, "from_dtype", names) == [1, 2, 3]
    assert chosen(frame.to_numpy(), "from_dtype", None) == []


@pytest.mark.parametrize(
    ("wanted", "sentence"),
    [
        ("all", 'must be "from_dtype"'),
        ([4], "names column 4, but X has columns 0 to 3"),
        ([True, False], "a mask of 2 columns, but X has 4"),
        (["weight"], "names 'weight', which is no column"),
        ([[1]], "one entry a column"),
    ],
)
def test_columns_that_do_not_exist_get_one_sentence(wanted, sentence):
    data, y = _table()
    with pytest.raises(ValueError, match=sentence):
        GPClassifier(categorical_features=wanted).fit(pd.DataFrame(data), y)


def test_codes_in_an_array_are_levels_if_they_are_declared():
    data, y = _table()
    codes = np.unique(data["colour"], return_inverse=True)[1]
    X = np.c_[data["size"], 10.0 * codes]
    clf = GPClassifier(**QUICK, categorical_features=[1]).fit(X, y)
    assert clf.inducing_points_.shape[1] == 5
    assert clf.score(X, y) > 0.95


def test_a_level_that_is_new_is_as_the_average_row():
    data, y = _table()
    frame = pd.DataFrame(data)
    clf = GPClassifier(**QUICK).fit(frame, y)
    strange = frame.assign(colour="violet")
    p = clf.predict_proba(strange)
    assert np.all(np.isfinite(p))
    np.testing.assert_allclose(p.sum(axis=1), 1)
    assert np.all(clf._rows(strange)[:, 1:5] == 0)


def test_mixed_levels_and_words_for_numbers_get_one_sentence():
    data, y = _table()
    frame = pd.DataFrame(data).astype({"colour": object})
    for column, row, value, sentence in (
        ("colour", 4, 7, "mixes int and str in column 'colour'"),
        ("size", 5, np.inf, "infinity in row 5, column 'size'"),
    ):
        broken = frame.copy()
        broken.loc[row, column] = value
        with pytest.raises(ValueError, match=sentence) as error:
            GPClassifier(categorical_features=["colour", "large", "shape"]).fit(broken, y)
        assert "\n" not in str(error.value)
    with pytest.raises(ValueError, match="row 0, column 'shape', which is not a number"):
        GPClassifier(categorical_features=["colour"]).fit(frame, y)
    clf = GPClassifier(**QUICK).fit(pd.DataFrame(data), y)
    with pytest.raises(ValueError, match="column 'colour', where the training rows had"):
        clf.predict(pd.DataFrame(data).assign(colour=1))


def test_a_frame_without_its_columns_is_refused():
    data, y = _table()
    frame = pl.DataFrame(data)
    clf = GPClassifier(**QUICK).fit(frame, y)
    with pytest.raises(ValueError, match="feature names should match"):
        clf.predict(frame.rename({"size": "length"}))


@given(seed=st.integers(0, 2**31), rows=st.integers(2, 60), levels=st.integers(1, 6))
def test_levels_together_have_the_variance_of_one_number(seed, rows, levels):
    rng = np.random.default_rng(seed)
    words = np.array(list("abcdef"))[rng.integers(levels, size=rows)]
    X = np.array([rng.normal(size=rows), words], dtype=object).T
    columns = Columns.of(X, [1], None)
    codes = columns.codes(X, None)
    weight = rng.uniform(0.1, 3.0, rows)
    found = Scaling.of(codes, weight, columns.counts)
    scaled = found.forward(codes)
    assert scaled.shape == (rows, found.width)
    variance = np.average(scaled**2, axis=0, weights=weight)
    several = len(np.unique(words)) > 1
    np.testing.assert_allclose(variance[1:].sum(), 1.0 if several else 0.0, atol=1e-9)
    np.testing.assert_allclose(np.average(scaled, axis=0, weights=weight), 0, atol=1e-9)
    same = words[:, None] == words[None, :]
    distances = np.sum((scaled[:, None, 1:] - scaled[None, :, 1:]) ** 2, axis=2)
    assert np.array_equal(distances < 1e-12, same)  # levels differ, all by as much
    if several:
        np.testing.assert_allclose(distances[~same], distances[~same][0])


FRAMES = [pd.DataFrame, pl.DataFrame]


def _refused(sentence, X, kind=ValueError, **parameters):
    y = np.arange(np.shape(X)[0]) % 2
    with pytest.raises(kind, match=sentence) as error:
        GPClassifier(**parameters).fit(X, y)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("frame", FRAMES)
def test_too_many_categories_are_refused_before_they_take_memory(frame):
    rows = 50_000
    texts = [f"{row:06d}" + "x" * 300 for row in range(rows)]  # 61 MB as an array of words
    X = frame({"size": np.zeros(rows), "text": texts})
    tracemalloc.start()
    try:
        _refused("50,000 categories in column 'text'.*drop.*group.*encode", X)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 50e6
    _refused(
        "1,001 categories in column 1", np.arange(2002).reshape(-1, 2), categorical_features=[1]
    )
    Columns.of(np.arange(2000).reshape(-1, 2), [1], None)


def test_categories_of_many_columns_are_counted_together():
    X = np.arange(900)[:, None] * np.ones(6, int)
    _refused(
        "become 5,400 columns .at most 5,000.*column 0", X, categorical_features=list(range(6))
    )


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("word", ["n/a", "", "nan", "twelve"])
def test_numbers_with_a_word_among_them_are_not_taken_for_categories(frame, word):
    numbers = [str(value) for value in np.random.default_rng(0).normal(size=30)]
    numbers[7] = word
    X = frame({"other": ["u", "v"] * 15, "size": numbers})
    _refused(f"has '{word}' in row 7, column 'size', where nearly all values are numbers", X)
    Columns.of(X, ["size"], ["other", "size"])  # unless the user says so


def test_numbers_and_a_word_as_objects_name_the_row():
    X = pd.DataFrame({"size": [1.0] * 20 + ["n/a"]})
    _refused("has 'n/a' in row 20, column 'size', which is not a number", X)
    _refused("has 'n/a' in row 20, column 'size'", X, categorical_features=None)


def test_codes_written_as_words_stay_categories():
    codes = pl.DataFrame({"code": ["01", "02", "03", "3b"] * 9})
    assert Columns.of(codes, "from_dtype", ["code"]).counts.tolist() == [4]


DAYS = pd.date_range("2020-01-01", periods=8)


@pytest.mark.parametrize("beside", [{}, {"word": list("abcdefgh")}, {"size": np.arange(8.0)}])
@pytest.mark.parametrize(
    "dates", [DAYS, DAYS - DAYS[0], [d.date() for d in DAYS], [d.time() for d in DAYS]]
)
@pytest.mark.parametrize("frame", FRAMES)
def test_dates_are_refused_in_every_frame_and_whatever_stands_beside_them(frame, dates, beside):
    X = frame({**beside, "when": list(dates)})
    _refused("holds dates or durations in column 'when': convert", X)
    if not beside:
        _refused("dates or durations in column 'when'", X, categorical_features=["when"])


def test_dates_in_an_array_are_refused():
    _refused("dates or durations in column 0", DAYS.to_numpy()[:, None])
    _refused("dates or durations in column 0", (DAYS - DAYS[0]).to_numpy()[:, None])


def test_dates_are_refused_at_prediction():
    X = pd.DataFrame({"when": np.arange(8.0)})
    clf = GPClassifier(**QUICK).fit(X, np.arange(8) % 2)
    with pytest.raises(ValueError, match="dates or durations in column 'when'"):
        clf.predict(pd.DataFrame({"when": DAYS}))
    with pytest.raises(ValueError, match="'x' in row 3, column 'when', which is not a number"):
        clf.predict(pd.DataFrame({"when": [1.0, 2.0, 3.0, "x"]}))


def test_two_columns_of_one_name_are_refused():
    _refused("X has two columns named 'a': give", pd.DataFrame(np.ones((4, 2)), columns=["a", "a"]))


@pytest.mark.parametrize(
    "X", [[[1.0, "u"], [2.0, "v"]], np.array([[1.0, "u"], [2.0, "v"]], object)]
)
def test_words_in_an_array_name_row_and_column_and_the_way_out(X):
    _refused("'u' in row 0, column 1, which is.*categorical_features or give X as a frame", X)
    assert Columns.of(np.array(X, object), [1], None).counts.tolist() == [0, 2]


def test_what_is_neither_word_nor_number_is_named():
    X = np.array([[1.0, 2.0], [3.0, {"a": 1}]], object)
    _refused("row 1, column 1, which is not a number", X, kind=TypeError)
    _refused("row 0, column 'l', which is not", pl.DataFrame({"l": [[1], [2]]}), kind=TypeError)


def test_where_our_sentences_send_people_a_table_is_taken():
    data, y = _table()
    imputed = SimpleImputer(strategy="most_frequent").fit_transform(pd.DataFrame(data))
    _refused(f"'{data['colour'][0]}' in row 0, column 1", imputed)
    clf = GPClassifier(**QUICK, categorical_features=[1, 2, 3]).fit(imputed, y)
    plain = GPClassifier(**QUICK).fit(pd.DataFrame(data), y)
    p = plain.predict_proba(pd.DataFrame(data))
    assert np.array_equal(clf.predict_proba(imputed), p)


def test_a_sparse_matrix_is_told_the_way():
    X = np.eye(6)
    for sparse in (csr_array(X), csr_matrix(X)):
        _refused(r"X is sparse.*X\.toarray\(\)", sparse, kind=TypeError)
        _refused("X is sparse", sparse, kind=TypeError, categorical_features=[0])
    clf = GPClassifier(**QUICK).fit(X, np.arange(6) % 2)
    with pytest.raises(TypeError, match="X is sparse"):
        clf.predict(csr_array(X))
