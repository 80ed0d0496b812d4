"""How a row reaches the Gaussian process."""

from gpclf.inputs.exact import Exact, Inputs

__all__ = ["Exact", "Inputs"]
