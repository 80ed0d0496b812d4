"""The law of a Gaussian plus Gumbel noise, as one smooth function of two variables.

ψ(t) = E exp(−e^(f−t)), f ~ N(μ, s²), is the chance that f plus the noise stays below t. With
z = t − μ, H(z, s) = log(−log ψ) is −z at s = 0, falls like −z + s²/2 far to the right, and bends
nowhere sharply: Chebyshev series in z carry it to 3e-5 as far as it counts, so small probabilities
keep their digits. Beyond 7 standard deviations of f plus noise a straight line takes over: with a
large s, probabilities below about 1e-11 are then right in their order of magnitude only.
Their coefficients are computed once, by plain quadrature at 129 values of s, and laid out so finely
that a straight line between two neighbours will do for any other s.
"""

import math
from functools import cache
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.special import log_ndtr, ndtr

SPREAD = math.pi / math.sqrt(6)  # the standard deviation of Gumbel noise
KNOTS = 129  # values of θ = atan(s / SPREAD) from 0 to π/2, where s and the noise change places
DEGREE = 21
RIGHT = 7.0  # the series end so many standard deviations of f plus noise to the right
LARGE, SMALL = 2.9, -10.0  # H where ψ is 1e-8, and where 1 − ψ is 5e-5
STENCIL = 4  # knots that the fine table between them is interpolated from
FINE = 16 * (KNOTS - 1) + 1  # rows of that table


def _left(sine: Any) -> Any:
    """Where the series begin, in standard deviations, given sin θ: ψ is below 1e-8 there."""
    return -2.3 - 3.3 * sine


def _exact(z: Float[np.ndarray, "P"], s: float) -> Float[np.ndarray, "P"]:
    """H by the trapezoidal rule: over f where it is narrower than the noise, else over that."""
    if s < 2:
        node = np.linspace(-13.0, 16.0, 233)
        log_weight = -0.5 * node**2 - 0.5 * math.log(2 * math.pi) + math.log(node[1] - node[0])
        excess = np.exp(np.minimum(s * node - z[:, None], 690.0))
        above = np.exp(log_weight) @ -np.expm1(-excess).T
        log_below = np.logaddexp.reduce(log_weight - excess, axis=1)
    else:
        node = np.linspace(-4.5, 45.0, 331)
        log_weight = -node - np.exp(-node) + math.log(node[1] - node[0])
        above = np.exp(log_weight) @ ndtr((node - z[:, None]) / s).T
        log_below = np.logaddexp.reduce(log_weight + log_ndtr((z[:, None] - node) / s), axis=1)
    return np.log(np.where(above < 0.5, -np.log1p(-np.minimum(above, 0.9)), -log_below))


@cache
def _table() -> Float[np.ndarray, "FINE columns"]:
    """For each θ the coefficients of H, those of ∂H/∂y, and the places where H is LARGE and SMALL.

    Places are in standard deviations of f plus noise, y runs from −1 to 1 over the series' range.
    """
    count = DEGREE + 1
    angle = np.pi * (np.arange(count) + 0.5) / count
    to_series = 2 / count * np.cos(np.arange(count)[:, None] * angle)
    to_series[0] /= 2
    rows = []
    for theta in np.linspace(0.0, np.pi / 2, KNOTS):
        width = SPREAD / max(math.cos(theta), 1e-5)
        left = _left(math.sin(theta))
        places = left + 0.5 * (np.cos(angle) + 1) * (RIGHT - left)
        series = to_series @ _exact(places * width, width * math.sin(theta))
        slope = np.polynomial.chebyshev.chebder(series)
        fine = np.linspace(-1, 1, 501)
        values = np.polynomial.chebyshev.chebval(fine, series)
        ends = np.interp([-LARGE, -SMALL], -values, fine)  # H falls
        ends = left + 0.5 * (ends + 1) * (RIGHT - left)
        rows.append(np.concatenate([series, slope, [0.0], ends]))
    return _refined(np.stack(rows))


def _refined(rows: Float[np.ndarray, "KNOTS columns"]) -> Float[np.ndarray, "FINE columns"]:
    """Lagrange's interpolation by the nearest knots."""
    position = np.linspace(0, KNOTS - 1, FINE)
    first = np.clip(np.floor(position).astype(int) - 1, 0, KNOTS - STENCIL)
    fine = np.zeros((FINE, rows.shape[1]))
    for i in range(STENCIL):
        others = [j for j in range(STENCIL) if j != i]
        weight = np.prod([(position - first - j) / (i - j) for j in others], axis=0)
        fine += weight[:, None] * rows[first + i]
    return fine


class Law(NamedTuple):
    """H of several classes, each as a function of t."""

    mean: Float[Array, "C"]
    width: Float[Array, "C"]  # the standard deviation of f plus noise
    left: Float[Array, "C"]
    series: Float[Array, "n C"]
    slope: Float[Array, "n-1 C"]
    low: Float[Array, "C"]  # t at which H is LARGE
    high: Float[Array, "C"]  # t at which H is SMALL

    def __call__(self, t: Float[Array, "P"]) -> tuple[Float[Array, "C P"], Float[Array, "C P"]]:
        """H and −∂H/∂t; beyond the ends of the series they go on in straight lines."""
        x = (t - self.mean[:, None]) / self.width[:, None]
        range_ = (RIGHT - self.left)[:, None]
        free = 2 * (x - self.left[:, None]) / range_ - 1
        y = jnp.clip(free, -1.0, 1.0)
        value, slope = _clenshaw(self.series, y), _clenshaw(self.slope, y)
        return value + slope * (free - y), -slope * 2 / (range_ * self.width[:, None])


def _clenshaw(series: Float[Array, "n C"], y: Float[Array, "C P"]) -> Float[Array, "C P"]:
    """Σ series_n T_n(y)."""
    ahead, further = jnp.zeros((2, *y.shape), y.dtype)
    twice = 2 * y
    for coefficient in series[:0:-1]:
        ahead, further = coefficient[:, None] + twice * ahead - further, ahead
    return series[0][:, None] + y * ahead - further


def law(mean: Float[Array, "C"], sd: Float[Array, "C"]) -> Law:
    """The law of each class, its series interpolated between the two nearest rows of the table."""
    theta = jnp.arctan2(sd, SPREAD)
    position = theta * (2 * (FINE - 1) / math.pi)
    first = jnp.clip(jnp.floor(position).astype(int), 0, FINE - 2)
    share = (position - first)[:, None]
    table = jnp.asarray(_table(), mean.dtype)
    columns = (1 - share) * table[first] + share * table[first + 1]
    width = jnp.hypot(sd, SPREAD)
    left = _left(jnp.sin(theta))
    n = DEGREE + 1
    low, high = mean + width * columns[:, 2 * n], mean + width * columns[:, 2 * n + 1]
    return Law(mean, width, left, columns[:, :n].T, columns[:, n : 2 * n - 1].T, low, high)
