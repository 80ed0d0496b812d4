"""One row for every kernel, likelihood and engine: the laws run on all of them.

A class that is exported but missing here fails `test_completeness.py`.
"""

import numpy as np

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

# likelihood, and the number of classes the laws use it with; a second word: the same otherwise
LIKELIHOODS = {
    "Logit": (lik.Logit(), 2),
    "LogitPG": (lik.LogitPG(), 2),
    "Probit": (lik.Probit(), 2),
    "Step": (lik.Step(), 4),
    "Step 2": (lik.Step(0.02, learn=False), 2),
    "NoisyProbit": (lik.NoisyProbit(), 4),
    "NoisyProbit 2": (lik.NoisyProbit(0.05), 2),
    "NoisyLogit": (lik.NoisyLogit(), 4),
    "NoisyLogit 2": (lik.NoisyLogit(), 2),
    "RobustMax": (lik.RobustMax(), 4),
    "RobustMax 2": (lik.RobustMax(0.01, learn=True), 2),
    "Softmax": (lik.Softmax(), 4),
    "Softmax 2": (lik.Softmax(), 2),
    "SoftmaxGumbel": (lik.SoftmaxGumbel(), 4),
    "LogisticSoftmax": (lik.LogisticSoftmax(), 4),
    "LogisticSoftmax 2": (lik.LogisticSoftmax(), 2),
    "LogisticSoftmax closed": (lik.LogisticSoftmax(bound_by="augmentation"), 4),
    "LogisticSoftmaxAugmented": (lik.LogisticSoftmaxAugmented(), 4),
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


def _family(*names: str) -> set[str]:
    return {case for case in LIKELIHOODS if case.split()[0] in names}


NOISY = _family("NoisyProbit", "NoisyLogit")
# the largest function wins, up to flipped labels
FLIPPED = _family("Step", "RobustMax") | NOISY
# bounds that equal the expectation itself, up to quadrature
EXACT = _family("Logit", "Probit", "Step", "RobustMax")
# bounds computed by quadrature: of E log p(y | f), or, with noise, of E log p(y | g)
QUADRATURE = EXACT | NOISY
# bounds that lie below log p(y | f) even where f is known
LOOSE_AT_ZERO = NOISY | _family("LogisticSoftmaxAugmented")
# bounds that are not concave: sites may have negative precision
INDEFINITE = FLIPPED | {"LogisticSoftmax", "LogisticSoftmax 2"}
# full closed-form steps (rate 1) are coordinate ascent: they never lower the ELBO
COORDINATE_ASCENT = _family("LogitPG", "LogisticSoftmaxAugmented") | {"LogisticSoftmax closed"}
