"""One row for every kernel and likelihood: the laws run on all of them.

A class that is exported but missing here fails `test_completeness.py`.
"""

import numpy as np

from gpclf import kernels as k
from gpclf import likelihoods as lik

LENGTHSCALES = np.array([0.7, 1.3, 2.0])

KERNELS = {
    "RBF": k.RBF(LENGTHSCALES, 1.5),
    "Matern12": k.Matern12(LENGTHSCALES, 0.8),
    "Matern32": k.Matern32(1.1, 2.0),
    "Matern52": k.Matern52(LENGTHSCALES, 1.0),
    "Linear": k.Linear(LENGTHSCALES, 0.5, 2.0),
    "Polynomial": k.Polynomial(3, LENGTHSCALES, 0.3, 1.2),
    "Constant": k.Constant(1.7),
    "White": k.White(0.4),
    "Sum": k.RBF(LENGTHSCALES, 1.0) + k.White(0.1),
    "Product": k.Matern52(LENGTHSCALES, 1.0) * (k.Linear(1.0) + 0.5),
}

# likelihood, and the number of classes the laws use it with
LIKELIHOODS = {
    "Logit": (lik.Logit(), 2),
    "LogitPG": (lik.LogitPG(), 2),
    "Softmax": (lik.Softmax(), 4),
    "SoftmaxGumbel": (lik.SoftmaxGumbel(), 4),
}

# bounds that equal the expectation itself, up to quadrature
EXACT = {"Logit"}
# full closed-form steps (rate 1) are coordinate ascent: they never lower the ELBO
COORDINATE_ASCENT = {"LogitPG"}
