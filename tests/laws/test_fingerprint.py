"""What tells rows from others."""

import numpy as np

from gpclf.data import fingerprint


def test_the_same_numbers_have_one_fingerprint_and_others_another():
    X = np.random.default_rng(0).normal(size=(70_000, 3))
    others = [X + 0.0, np.asfortranarray(X), X[::-1][::-1]]
    assert {fingerprint(other) for other in others} == {fingerprint(X)}
    changed = X.copy()
    changed[-1, -1] = np.nextafter(changed[-1, -1], 1)
    turned = X[np.r_[1, 0, 2:70_000]]
    kinds = [changed, turned, X[:-1], X.ravel(), X.astype(np.float32), X[:, :2], None]
    assert len({fingerprint(other) for other in [X, *kinds]}) == 1 + len(kinds)


def test_words_and_empty_arrays_have_fingerprints():
    words = [np.array(["a", "b"]), np.array(["a", "c"]), np.array(["a", "b"], dtype=object)]
    empty = [np.zeros((0, 3)), np.zeros((0, 2)), np.zeros(0)]
    each = [fingerprint(array) for array in [*words, *empty]]
    assert len(set(each)) == len(each)
