"""Integrals by deterministic rules, each row on its own.

`graded`: Gaussian expectations of functions that bend near 0 and grow like a polynomial beyond.
`panels`: integrals over the winner's value, where every class bends the integrand at its own scale.
`normal_nodes`: few places with equal weights that stand for a normal law of any dimension.

By `panels`: `winner`, which of several Gaussians is the largest; `gumbel_race`, the same with
Gumbel noise on each, which is the expected softmax, its law from the series of `gumbel_law`.
"""

from gpclf.quadrature.graded import Points, graded
from gpclf.quadrature.normal_nodes import normal_nodes
from gpclf.quadrature.panels import REACH, panels

__all__ = ["REACH", "Points", "graded", "normal_nodes", "panels"]
