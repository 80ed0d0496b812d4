"""Kernels: k(x, x′), as objects (`RBF() + 0.5 * Matern52()`) or by name ("rbf + matern52")."""

from typing import Any

from gpclf.kernels.base import Kernel
from gpclf.kernels.combination import Product, Sum
from gpclf.kernels.constant import Constant, White
from gpclf.kernels.dot_product import Linear, Polynomial
from gpclf.kernels.stationary import RBF, Matern12, Matern32, Matern52

__all__ = [
    "RBF",
    "Constant",
    "Kernel",
    "Linear",
    "Matern12",
    "Matern32",
    "Matern52",
    "Polynomial",
    "Product",
    "Sum",
    "White",
    "kernel_from",
]

NAMES = {
    "rbf": RBF,
    "matern12": Matern12,
    "matern32": Matern32,
    "matern52": Matern52,
    "linear": Linear,
    "quadratic": lambda: Polynomial(2),
    "cubic": lambda: Polynomial(3),
    "constant": Constant,
    "white": White,
}


def kernel_from(spec: Any) -> Kernel:
    """The kernel that a name, a formula of names with + and *, or a kernel object stands for."""
    if isinstance(spec, Kernel):
        return spec
    if not isinstance(spec, str):
        raise ValueError(f"kernel must be a Kernel, a name or None, got {spec!r}.")
    terms = [[_named(name.strip()) for name in term.split("*")] for term in spec.split("+")]
    total = None
    for factors in terms:
        product = factors[0]
        for factor in factors[1:]:
            product = product * factor
        total = product if total is None else total + product
    assert total is not None  # str.split gives at least one term
    return total


def _named(name: str) -> Kernel:
    if name not in NAMES:
        raise ValueError(f"There is no kernel named {name!r}; the names are {', '.join(NAMES)}.")
    return NAMES[name]()
