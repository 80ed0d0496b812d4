"""Gaussian process classification: calibrated probabilities from a hundred to ten million rows."""

from gpclf import inputs, kernels, likelihoods
from gpclf.estimators import GPClassifier
from gpclf.inference import engines
from gpclf.posterior import Posterior

__version__ = "0.1.0"
__all__ = [
    "GPClassifier",
    "Posterior",
    "__version__",
    "engines",
    "inputs",
    "kernels",
    "likelihoods",
]
