"""Gaussian process classification: calibrated probabilities from a hundred to ten million rows."""

import gc

_collects = gc.isenabled()
gc.disable()  # imports make no garbage; to look for it takes a tenth of a second and more
try:
    from gpclf import kernels, likelihoods
    from gpclf.estimators import GPClassifier
    from gpclf.posterior import Posterior
finally:
    if _collects:
        gc.enable()

__version__ = "0.1.0"
__all__ = ["GPClassifier", "Posterior", "__version__", "kernels", "likelihoods"]
