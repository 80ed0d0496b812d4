"""scikit-learn's own checks: all of them, none expected to fail."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from gpclf import GPClassifier


@pytest.mark.filterwarnings("default")
@parametrize_with_checks([GPClassifier(n_inducing=20, max_epochs=10, random_state=0)])
def test_sklearn_checks(estimator, check):
    check(estimator)
