"""How a row reaches the Gaussian process."""

from gpclf.inputs.exact import Exact, Features, Inputs, Whitening

__all__ = ["Exact", "Features", "Inputs", "Whitening"]
