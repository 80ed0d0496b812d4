"""Gaussian process classification: calibrated probabilities from a hundred to ten million rows."""

from gpclf import inputs, kernels, likelihoods
from gpclf.data.sources import ArrowTable, ParquetTable
from gpclf.estimators import GPClassifier
from gpclf.inference import engines
from gpclf.posterior import Posterior

__version__ = "0.1.0"
__all__ = [
    "ArrowTable",
    "GPClassifier",
    "ParquetTable",
    "Posterior",
    "__version__",
    "engines",
    "inputs",
    "kernels",
    "likelihoods",
]
