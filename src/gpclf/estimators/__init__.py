"""The scikit-learn face."""

from gpclf.estimators.classifier import GPClassifier

__all__ = ["GPClassifier"]
