"""One row for every kernel, likelihood and engine, with its truth: the laws run on all of them.

A class that is exported but missing here fails `test_completeness.py`.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import expit, log_expit, log_ndtr, ndtr

import truth
from gpclf import kernels as k
from gpclf import likelihoods as lik
from gpclf.inference.engines import Decoupled, Gradient, MeanField, Natural, PowerEP

LENGTHSCALES = np.array([0.7, 1.3, 2.0])

# a second word: the same otherwise
KERNELS = {
    "RBF": k.RBF(LENGTHSCALES, 1.5),
    "Matern12": k.Matern12(LENGTHSCALES, 0.8),
    "Matern32": k.Matern32(1.1, 2.0),
    "Matern52": k.Matern52(LENGTHSCALES, 1.0),
    "Laplace": k.Laplace(LENGTHSCALES, 0.8),
    "Laplace columns": k.Laplace([0.7, 2.0], 1.0, active_dims=[2, 0]),
    "Linear": k.Linear(LENGTHSCALES, 0.5, 2.0),
    "Polynomial": k.Polynomial(3, LENGTHSCALES, 0.3, 1.2),
    "Matern52 columns": k.Matern52([0.7, 2.0], 1.0, active_dims=[2, 0]),
    "Polynomial columns": k.Polynomial(2, 0.9, 0.3, 1.2, active_dims=[1]),
    "White columns": k.White(0.4, active_dims=[0, 1]),
    "Constant": k.Constant(1.7),
    "White": k.White(0.4),
    "Sum": k.RBF(LENGTHSCALES, 1.0) + k.White(0.1),
    "Product": k.Matern52(LENGTHSCALES, 1.0) * (k.Linear(1.0) + 0.5),
    "Product columns": k.RBF(0.8, active_dims=[0]) * k.Linear(1.1, active_dims=[1, 2]),
}


class Case(NamedTuple):
    """A likelihood, the number of classes the laws use it with, and what is true of it."""

    likelihood: lik.Likelihood
    n_classes: int
    truth: truth.OneFunction | truth.Winner | truth.Softened  # E log p(y | f), and E p(y | f)
    by_quadrature: bool = False  # the bound is the truth's first, up to quadrature; else below it
    noisy: bool = False  # ... of E log p(y | f + noise)
    loose_at_zero: bool = False  # the bound lies below log p(y | f) even where f is known
    concave: bool = True  # the bound is; else sites may have negative precision
    ascent: bool = False  # full closed-form steps (rate 1) never lower the ELBO


def _exact(likelihood: lik.Likelihood, log_cdf: Callable, cdf: Callable) -> Case:
    return Case(likelihood, 2, truth.OneFunction(log_cdf, cdf), by_quadrature=True)


def _winner(likelihood: lik.Likelihood, n_classes: int, *, noisy: bool = False) -> Case:
    """The largest function wins, up to flipped labels."""
    law = truth.Winner(likelihood)
    return Case(likelihood, n_classes, law, True, noisy, loose_at_zero=noisy, concave=False)


# a second word: the same otherwise
LIKELIHOODS = {
    "Logit": _exact(lik.Logit(), log_expit, expit),
    "LogitPG": Case(lik.LogitPG(), 2, truth.OneFunction(log_expit, expit), ascent=True),
    "Probit": _exact(lik.Probit(), log_ndtr, ndtr),
    "Step": _winner(lik.Step(), 4),
    "Step 2": _winner(lik.Step(0.02, learn=False), 2),
    "NoisyProbit": _winner(lik.NoisyProbit(), 4, noisy=True),
    "NoisyProbit 2": _winner(lik.NoisyProbit(0.05), 2, noisy=True),
    "NoisyLogit": _winner(lik.NoisyLogit(), 4, noisy=True),
    "NoisyLogit 2": _winner(lik.NoisyLogit(), 2, noisy=True),
    "RobustMax": _winner(lik.RobustMax(), 4),
    "RobustMax 2": _winner(lik.RobustMax(0.01, learn=True), 2),
    "Softmax": Case(lik.Softmax(), 4, truth.SOFTMAX),
    "Softmax 2": Case(lik.Softmax(), 2, truth.SOFTMAX),
    "SoftmaxGumbel": Case(lik.SoftmaxGumbel(), 4, truth.SOFTMAX),
    "LogisticSoftmax": Case(lik.LogisticSoftmax(), 4, truth.LOGISTIC_SOFTMAX, concave=False),
    "LogisticSoftmax 2": Case(lik.LogisticSoftmax(), 2, truth.LOGISTIC_SOFTMAX, concave=False),
    "LogisticSoftmax closed": Case(
        lik.LogisticSoftmax(bound_by="augmentation"), 4, truth.LOGISTIC_SOFTMAX, ascent=True
    ),
    "LogisticSoftmaxAugmented": Case(
        lik.LogisticSoftmaxAugmented(), 4, truth.LOGISTIC_SOFTMAX, loose_at_zero=True, ascent=True
    ),
}

# engines, and parameters with which each fits the same two classes
ENGINES = {
    "Natural": (Natural(), {}),
    "Gradient": (Gradient(), {"max_epochs": 60}),  # it needs more of them
    "Decoupled": (Decoupled(n_mean=8), {}),
    "PowerEP": (PowerEP(alpha=0.5), {}),
    "MeanField": (MeanField(), {"likelihood": "probit"}),
    "MeanField 2": (MeanField(predictive="plug-in"), {"likelihood": "probit"}),
}


def likelihoods(kept: Callable[[Case], bool]) -> list[str]:
    """The names of the cases of which this is true."""
    return sorted(name for name, case in LIKELIHOODS.items() if kept(case))


NOISY = likelihoods(lambda case: case.noisy)
FLIPPED = likelihoods(lambda case: isinstance(case.truth, truth.Winner))
CONCAVE = likelihoods(lambda case: case.concave)
ASCENT = likelihoods(lambda case: case.ascent)
