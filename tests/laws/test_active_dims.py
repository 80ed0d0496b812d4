"""Laws of kernels that see some columns only."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from gpclf import GPClassifier
from gpclf.gaussian import Moments
from gpclf.inputs import FirstOrder, Whitening
from gpclf.kernels import RBF, Laplace, Linear, Matern12, Matern32, Matern52, Polynomial, White
from gpclf.precision import cast

COLUMNS = [3, 1]
SOME = [RBF, Matern12, Matern32, Matern52, Laplace, Linear, lambda **own: Polynomial(2, **own)]


def _rows(seed, n):
    return jnp.asarray(np.random.default_rng(seed).normal(size=(n, 4)))


@pytest.mark.parametrize("make", SOME)
@pytest.mark.parametrize("lengthscale", [0.8, [0.8, 1.7]])
def test_it_equals_the_kernel_of_the_chosen_columns(make, lengthscale, x64):
    X, Y = _rows(0, 6), _rows(1, 5)
    some = cast(make(lengthscale=lengthscale, active_dims=COLUMNS), jnp.float64)
    alone = cast(make(lengthscale=lengthscale), jnp.float64)
    chosen = np.array(COLUMNS)
    Xc, Yc = X[:, chosen], Y[:, chosen]
    np.testing.assert_allclose(some.matrix(X, Y), alone.matrix(Xc, Yc), rtol=1e-12)
    np.testing.assert_allclose(some.diagonal(X), alone.diagonal(Xc), rtol=1e-12)
    np.testing.assert_allclose(some(X[0], Y[0]), alone(Xc[0], Yc[0]), rtol=1e-12)
    relevance = some.relevance(4)
    np.testing.assert_allclose(relevance[chosen], alone.relevance(2), rtol=1e-12)
    assert np.all(relevance[[0, 2]] == 0)
    assert np.all(relevance[chosen] > 0)


def test_white_noise_is_the_same_where_its_columns_are(x64):
    X = _rows(0, 3)
    Y = X.at[0, 0].add(1.0).at[1, 3].add(1.0)
    same = White(0.5, active_dims=COLUMNS).matrix(X, Y)
    np.testing.assert_allclose(same, np.diag([0.5, 0.0, 0.5]))


def test_in_sums_and_products_each_part_has_its_own(x64):
    X, Y = _rows(0, 6), _rows(1, 5)
    one, other = RBF(0.7, active_dims=[0]), Linear([1.0, 2.0], active_dims=[1, 3])
    left, right = RBF(0.7).matrix(X[:, :1], Y[:, :1]), Linear([1.0, 2.0])
    right = right.matrix(X[:, np.array([1, 3])], Y[:, np.array([1, 3])])
    np.testing.assert_allclose((one + other).matrix(X, Y), left + right, rtol=1e-12)
    np.testing.assert_allclose((one * other).matrix(X, Y), left * right, rtol=1e-12)
    assert np.array_equal((one * other).relevance(4) > 0, [True, True, False, True])


@pytest.mark.parametrize("make", SOME)
def test_gradients_reach_the_chosen_columns_and_no_others(make, x64):
    kernel = cast(make(lengthscale=[0.8, 1.7], active_dims=COLUMNS), jnp.float64)
    X, Z = _rows(0, 6), _rows(1, 5)
    by_kernel, by_Z = jax.grad(lambda k, Z: jnp.sum(jnp.sin(k.matrix(X, Z))), argnums=(0, 1))(
        kernel, Z
    )
    assert np.all(np.abs(by_kernel.log_lengthscale) > 0)
    assert np.all(by_Z[:, np.array([0, 2])] == 0)
    assert np.all(np.any(by_Z[:, np.array(COLUMNS)] != 0, axis=0))


@pytest.mark.parametrize("make", SOME)
@pytest.mark.parametrize("rows", [1, 6])  # errors alike, or of each row its own
def test_errors_of_other_columns_do_not_count_for_the_slope(make, rows, x64):
    """∇μᵀ V ∇μ by the kernel's own slopes, where it has them, equals the slope of kᵀα itself."""
    kernel = cast(make(lengthscale=[0.8, 1.7], active_dims=COLUMNS), jnp.float64)
    X, Z, std = _rows(0, 6), _rows(1, 3), 0.5 + _rows(2, rows) ** 2
    whitening = Whitening(jnp.eye(3), jnp.ones(3))
    q = Moments(jnp.array([0.3, -1.0, 0.8]), jnp.zeros((3, 3)))
    inputs = FirstOrder()
    features = inputs.features(kernel, Z, whitening, X)
    reach = inputs.reach(kernel, Z, X, std)
    found = inputs.extra(kernel, Z, whitening, reach, features, q, X, std)
    slope = jax.vmap(jax.grad(lambda x: kernel.matrix(x[None], Z)[0] @ q.mean))(X)
    np.testing.assert_allclose(found, jnp.sum((std * slope) ** 2, axis=1), rtol=1e-9)
    assert np.all(slope[:, 0] == 0)


def test_a_start_from_the_data_has_a_lengthscale_for_each_chosen_column():
    """Of D columns that are alike, d have √(d/D) of the distance."""
    kernel = (RBF(active_dims=[0, 2]) + Linear(active_dims=[1])).started(3.0, 8)
    np.testing.assert_allclose(np.exp(kernel.left.log_lengthscale), np.full(2, 1.5))
    np.testing.assert_allclose(np.exp(kernel.right.log_lengthscale), np.ones(1))
    assert np.shape(RBF(ard=False, active_dims=[0]).started(3.0, 8).log_lengthscale) == ()


@pytest.mark.parametrize("bad", [[], [0, 0], [-1], [0.5], "ab", [True], 1.0, [[0]]])
def test_what_names_no_columns_is_refused(bad):
    with pytest.raises(ValueError, match="active_dims must be the numbers of one or more columns"):
        RBF(active_dims=bad)


def test_columns_that_rows_do_not_have_are_refused():
    within = RBF() + Linear(active_dims=[4])
    for kernel in (RBF(1.0, active_dims=[0, 4]), White(active_dims=4), within):
        with pytest.raises(ValueError, match="active_dims has column 4, but rows have 4 columns"):
            kernel.started(1.0, 4)
    with pytest.raises(ValueError, match="active_dims has column 4"):
        RBF(1.0, active_dims=[4]).matrix(_rows(0, 2), _rows(0, 2))
    with pytest.raises(ValueError, match="3 lengthscales, but active_dims has 2 features"):
        RBF([1.0, 2.0, 3.0], active_dims=COLUMNS).started(1.0, 4)


@pytest.mark.parametrize("share", ["both", "points"])
def test_a_classifier_learns_from_the_chosen_columns_and_keeps_them_in_its_file(tmp_path, share):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = (X[:, 0] + 0.3 * rng.normal(size=60) > 0).astype(int)
    kernel = RBF(active_dims=(0, 2)) + Linear(active_dims=[0])
    own = {"n_inducing": 10, "max_epochs": 8, "random_state": 0, "share": share}
    clf = GPClassifier(kernel=kernel, **own).fit(X, y)
    assert clf.score(X, y) > 0.85
    assert clf.relevance_[1] == 0
    moved = X + np.array([0.0, 5.0, 0.0])
    np.testing.assert_allclose(clf.predict_proba(moved), clf.predict_proba(X), rtol=1e-12)
    clf.save(tmp_path / "model.gpclf")
    other = GPClassifier.load(tmp_path / "model.gpclf")
    assert other.kernel_.left.active_dims == (0, 2)
    assert np.array_equal(other.predict_proba(X), clf.predict_proba(X))
