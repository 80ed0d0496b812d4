"""The scikit-learn face."""

from gpclf.estimators.classifier import GPClassifier
from gpclf.estimators.learning import FitInterrupted

__all__ = ["FitInterrupted", "GPClassifier"]
