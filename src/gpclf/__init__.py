"""Gaussian process classification: calibrated probabilities from a hundred to ten million rows."""

import gc

_collects = gc.isenabled()
gc.disable()  # imports make no garbage; to look for it takes a tenth of a second and more
try:
    from gpclf import kernels, likelihoods
    from gpclf.estimators import GPClassifier
    from gpclf.posterior import Posterior
finally:
    if gc.get_freeze_count() == 0:  # else what the user set aside would come back
        gc.freeze()
        gc.unfreeze()  # all as old as objects can be: none is looked through at the next chance
    if _collects:
        gc.enable()

__version__ = "0.1.0"
__all__ = ["GPClassifier", "Posterior", "__version__", "kernels", "likelihoods"]
