"""Kernels: k(x, x′), as objects (`RBF() + 2 * Matern52()`) or by name ("rbf + 2 * matern52")."""

import re
from functools import reduce
from math import inf
from operator import add, mul
from typing import Any

from gpclf.kernels.base import Kernel
from gpclf.kernels.combination import Product, Sum
from gpclf.kernels.constant import Constant, White
from gpclf.kernels.dot_product import Linear, Polynomial
from gpclf.kernels.prior import LogNormal, Prior
from gpclf.kernels.stationary import (
    FAMILIES,
    RBF,
    Laplace,
    Matern12,
    Matern32,
    Matern52,
    Stationary,
)
from gpclf.names import is_class, unknown

__all__ = [
    "FAMILIES",
    "RBF",
    "Constant",
    "Kernel",
    "Laplace",
    "Linear",
    "LogNormal",
    "Matern12",
    "Matern32",
    "Matern52",
    "Polynomial",
    "Prior",
    "Product",
    "Stationary",
    "Sum",
    "White",
    "kernel_from",
]

NAMES = {
    "rbf": RBF,
    "laplace": Laplace,
    "matern12": Matern12,
    "matern32": Matern32,
    "matern52": Matern52,
    "linear": Linear,
    "quadratic": lambda: Polynomial(2),
    "cubic": lambda: Polynomial(3),
    "constant": Constant,
    "white": White,
}


PLUS = re.compile(r"(?<!\d[eE])\+")  # not that of 1e+3


def kernel_from(spec: Any) -> Kernel:
    """The kernel that a name, a formula of names and numbers, or a kernel object stands for."""
    if isinstance(spec, Kernel):
        return spec
    if isinstance(spec, type) and issubclass(spec, Kernel):
        raise ValueError(is_class("kernel", spec))
    if not isinstance(spec, str):
        raise ValueError(f"kernel must be a Kernel, a name or None, got {spec!r}.")
    products = (
        reduce(mul, (_named(name.strip(), spec) for name in term.split("*")))
        for term in PLUS.split(spec)
    )
    return reduce(add, products)


def _named(name: str, formula: str) -> Kernel:
    """The kernel of a name, or the constant one for a number."""
    if name in NAMES:
        return NAMES[name]()
    try:
        variance = float(name)
    except ValueError:
        raise ValueError(unknown("kernel", name, NAMES)) from None
    if not 0 < variance < inf:
        raise ValueError(
            f"kernel={formula!r} has the number {name}: numbers must be positive and finite."
        )
    return Constant(variance)
