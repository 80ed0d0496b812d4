"""Names of kernels and likelihoods: formulas mean what objects do, and a slip gets a hint."""

import jax.numpy as jnp
import numpy as np
import pytest

from gpclf import kernels, likelihoods
from gpclf.kernels import RBF, Linear, Matern52, kernel_from
from gpclf.likelihoods import Logit, RobustMax, likelihood_from

FORMULAS = {
    "2*rbf": 2 * RBF(),
    "rbf * 0.5": RBF() * 0.5,
    "0.5 * rbf + 1e-2*matern52": 0.5 * RBF() + 0.01 * Matern52(),
    "1e+1 * rbf + linear": 10 * RBF() + Linear(),
    "rbf + .3": RBF() + 0.3,
    "2*rbf*linear": 2 * RBF() * Linear(),
}


@pytest.mark.parametrize("formula", sorted(FORMULAS))
def test_a_formula_with_numbers_is_the_kernel_of_the_same_objects(formula):
    X = jnp.asarray(np.random.default_rng(0).normal(size=(5, 2)))
    named, built = (k.started(1.0, 2) for k in (kernel_from(formula), FORMULAS[formula]))
    np.testing.assert_allclose(named.matrix(X, X), built.matrix(X, X), rtol=1e-6)


@pytest.mark.parametrize("number", ["0", "-2", "inf", "nan", "-1e3"])
def test_a_number_in_a_formula_is_positive_and_finite(number):
    with pytest.raises(ValueError, match=f"has the number {number}: numbers must be positive"):
        kernel_from(f"{number} * rbf")


@pytest.mark.parametrize(
    ("slip", "hint"),
    [
        ("RBF", "did you mean 'rbf'?"),
        ("rbf + Matern52", "did you mean 'matern52'?"),
        ("matern-5/2", "did you mean 'matern52'?"),
        ("rbff", "did you mean 'rbf'?"),
        (RBF, "did you mean RBF()?"),
    ],
)
def test_a_slip_in_a_kernels_name_gets_a_hint(slip, hint):
    with pytest.raises(ValueError, match="kernel") as error:
        kernel_from(slip)
    assert hint in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("slip", "hint"),
    [
        ("Logit", "did you mean 'logit'?"),
        ("RobustMax", "did you mean 'robust-max'?"),
        ("logistic_softmax", "did you mean 'logistic-softmax'?"),
        ("Auto", "did you mean 'auto'?"),
        (Logit, "did you mean Logit()?"),
        (RobustMax, "did you mean RobustMax()?"),
    ],
)
def test_a_slip_in_a_likelihoods_name_gets_a_hint(slip, hint):
    with pytest.raises(ValueError, match="likelihood") as error:
        likelihood_from(slip, 2)
    assert hint in str(error.value)


def test_a_name_like_none_gets_the_list_and_no_hint():
    for make, names in (
        (kernel_from, kernels.NAMES),
        (lambda name: likelihood_from(name, 2), likelihoods.NAMES),
    ):
        with pytest.raises(ValueError, match="There is no") as error:
            make("zzz")
        assert "did you mean" not in str(error.value)
        assert all(name in str(error.value) for name in names)
