"""Gaussian process classification: calibrated probabilities from a hundred to ten million rows."""

from gpclf import kernels, likelihoods
from gpclf.estimators import GPClassifier
from gpclf.posterior import Posterior

__version__ = "0.1.0"
__all__ = ["GPClassifier", "Posterior", "__version__", "kernels", "likelihoods"]
