"""Laws of a prior of one's own on a kernel's parameters."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from gpclf import GPClassifier
from gpclf.kernels import RBF, Constant, Linear, LogNormal, White
from gpclf.precision import cast

QUICK = {"n_inducing": 10, "max_epochs": 30, "random_state": 0}


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    return X, (X[:, 0] + 0.3 * rng.normal(size=60) > 0).astype(int)


def test_the_log_prior_is_the_sum_of_the_logarithms_laws(x64):
    kernel = RBF([1.0, 3.0], 2.0).with_prior(lengthscale=LogNormal(2.0, 0.5))
    squares = (np.log([0.5, 1.5]) / 0.5) ** 2
    np.testing.assert_allclose(kernel.log_prior(), -0.5 * squares.sum(), rtol=1e-12)
    both = kernel.with_prior(variance=LogNormal(1.0, 0.1)) * Linear()
    expected = -0.5 * squares.sum() - 0.5 * (np.log(2.0) / 0.1) ** 2
    np.testing.assert_allclose(both.log_prior(), expected, rtol=1e-12)


def test_a_prior_of_the_variance_leaves_the_law_of_lengthscales_as_it_is(x64):
    plain = RBF([1.0, 3.0], 2.0)
    at_median = plain.with_prior(variance=LogNormal(2.0, 0.3))
    assert plain.log_prior() < 0
    np.testing.assert_allclose(at_median.log_prior(), plain.log_prior(), rtol=1e-12)


def test_its_gradient_equals_finite_differences(x64):
    laws = {"variance": LogNormal(0.5, 0.4), "bias": LogNormal(2.0, 0.7)}
    kernel = RBF([1.0, 3.0], 2.0).with_prior(lengthscale=LogNormal(2.0, 0.5))
    kernel = cast(kernel + Linear(1.3).with_prior(**laws), jnp.float64)
    leaves, structure = jax.tree.flatten(kernel)
    slopes = jax.tree.leaves(jax.grad(lambda k: k.log_prior())(kernel))
    for place, slope in enumerate(slopes):
        for entry in np.ndindex(slope.shape):

            def moved(by, place=place, entry=entry):
                there = list(leaves)
                there[place] = jnp.asarray(leaves[place]).at[entry].add(by)
                return jax.tree.unflatten(structure, there).log_prior()

            numeric = (moved(1e-5) - moved(-1e-5)) / 2e-5
            np.testing.assert_allclose(slope[entry], numeric, rtol=1e-6, atol=1e-8)
    assert any(np.any(slope != 0) for slope in slopes)


@pytest.mark.parametrize("own", [{}, {"share": "none"}, {"inference": "gradient"}], ids=str)
def test_a_tight_prior_holds_parameters_at_its_median_and_is_saved(rows, own, tmp_path):
    laws = {"lengthscale": LogNormal(3.0, 0.01), "variance": LogNormal(1.5, 0.01)}
    clf = GPClassifier(kernel=RBF().with_prior(**laws), **QUICK, **own).fit(*rows)
    np.testing.assert_allclose(clf.kernel_.lengthscale, 3.0, rtol=0.02)
    np.testing.assert_allclose(clf.kernel_.variance, 1.5, rtol=0.02)
    clf.save(tmp_path / "model.gpclf")
    other = GPClassifier.load(tmp_path / "model.gpclf")
    assert other.kernel_.priors == clf.kernel_.priors
    assert dict(other.kernel.priors) == laws


def test_a_wide_prior_leaves_the_rows_to_decide(rows):
    free = GPClassifier(kernel=RBF(1.0), **QUICK).fit(*rows)
    wide = RBF(1.0).with_prior(lengthscale=LogNormal(1.0, 1e3))
    wide = GPClassifier(kernel=wide, **QUICK).fit(*rows)
    np.testing.assert_allclose(wide.elbo_, free.elbo_, atol=0.05)
    assert abs(np.log(free.kernel_.lengthscale)) > 0.1


def test_a_lengthscale_that_is_left_to_the_data_starts_at_the_median_of_its_prior():
    kernel = RBF().with_prior(lengthscale=LogNormal(0.7, 0.5)).started(3.0, 2)
    np.testing.assert_allclose(np.exp(kernel.log_lengthscale), [0.7, 0.7])


def test_wrong_priors_are_refused():
    with pytest.raises(ValueError, match="White has no parameter 'lengthscale': its parameters"):
        White().with_prior(lengthscale=LogNormal(1.0, 1.0))
    with pytest.raises(ValueError, match="Sum has no parameter 'variance': its parts have them"):
        (RBF() + 1.0).with_prior(variance=LogNormal(1.0, 1.0))
    with pytest.raises(ValueError, match="The prior of variance must be a Prior"):
        Constant().with_prior(variance=(0.0, 1.0))
    for bad in ((0.0, 1.0), (1.0, -1.0), (np.nan, 1.0), ([1.0], 1.0)):
        with pytest.raises(ValueError, match="must be a positive and finite number"):
            LogNormal(*bad)
