"""scikit-learn's own checks: all of them, none expected to fail."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from gpclf import GPClassifier
from gpclf.inference import selection


@pytest.mark.filterwarnings("default")
@parametrize_with_checks([GPClassifier(n_inducing=20, max_epochs=10, random_state=0)])
def test_sklearn_checks(estimator, check, monkeypatch):
    """With few kernels for rows left out to choose from: none of the checks is about these."""
    monkeypatch.setattr(selection, "MOST_CHOICES", 3)
    check(estimator)
