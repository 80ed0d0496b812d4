"""Laws of the choice of inducing points."""

import numpy as np

from gpclf import inducing


def test_every_cluster_gets_its_centre():
    rng = np.random.default_rng(0)
    middles = 100.0 * np.array([[i, j] for i in range(3) for j in range(4)])
    X = np.repeat(middles, 30, axis=0) + rng.normal(size=(360, 2))
    Z = inducing.choose(X, len(middles), rng)
    np.testing.assert_allclose(Z, np.unique(X.reshape(12, 30, 2).mean(axis=1), axis=0), rtol=1e-12)


def test_rows_that_occur_twice_count_once():
    X = np.repeat(np.arange(5.0), 20)[:, None]
    for count in (5, 30, None):
        Z = inducing.choose(X, count, np.random.default_rng(0))
        np.testing.assert_array_equal(Z, np.arange(5.0)[:, None])
