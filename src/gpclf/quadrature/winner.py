"""Which of several independent Gaussians is the largest, with gradients in the same integral."""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.scipy.special import erfc
from jaxtyping import Array, Float, Int

from gpclf.quadrature.panels import REACH, panels
from gpclf.quadrature.rows import rows_last

# A class needs up to four panels of its own, where its scale is unlike the others'.
PANELS_FEW, PANELS_PER_CLASS, PANELS_MANY = 8, 5, 48

Rows = Float[Array, "C *B"]  # functions of one row, or of many
Each = Float[Array, "*B"]

# (1 − Φ)/φ at z = (1/t − 1)/MILLS_SCALE is t Σ MILLS tᵏ, to a part in 2·10⁷ for z up to 6.
MILLS_SCALE = 0.4
MILLS = (
    0.40032312, 0.39392223, 0.38424287, -0.00219403, 0.58928151, -0.90361416, 0.48767479,
    -0.09632226,
)  # fmt: skip


def normal_cdf(z: Float[Array, "*s"]) -> Float[Array, "*s"]:
    """Φ, with its left tail to relative precision."""
    return 0.5 * erfc(-z * math.sqrt(0.5))


def cdf_and_density(z: Float[Array, "*s"]) -> tuple[Float[Array, "*s"], Float[Array, "*s"]]:
    """Φ and φ for z ≥ −6; in single precision both with one exponential."""
    density = jnp.exp(-0.5 * z**2) / math.sqrt(2 * math.pi)
    if z.dtype != jnp.float32:
        return normal_cdf(z), density
    t = 1 / (1 + MILLS_SCALE * jnp.abs(z))
    ratio = jnp.full_like(t, MILLS[-1])
    for coefficient in MILLS[-2::-1]:
        ratio = ratio * t + coefficient
    tail = density * ratio * t
    return jnp.where(z < 0, tail, 1 - tail), density


def _scale(mean: Rows, variance: Rows) -> Rows:
    """Standard deviations, not below what the means resolve."""
    finest = 8 * jnp.finfo(mean.dtype).eps * (jnp.max(mean, axis=0) - jnp.min(mean, axis=0))
    return jnp.maximum(jnp.sqrt(variance), finest)


def _most(n_classes: int) -> int:
    return min(PANELS_FEW + PANELS_PER_CLASS * n_classes, PANELS_MANY)


def _over_nodes(
    at: Callable[[Each, Each], Any], zero: Any
) -> Callable[[Float[Array, "nodes *B"], Float[Array, "nodes *B"]], Any]:
    """Σ at(g, weight) over the nodes of a panel, one after the other."""

    def integrals(g: Float[Array, "nodes *B"], weights: Float[Array, "nodes *B"]) -> Any:
        def add(k, total):
            return jax.tree.map(jnp.add, total, at(g[k], weights[k]))

        return jax.lax.fori_loop(0, len(g), add, zero)

    return integrals


@rows_last
def _win(y: Int[Array, "*B"], mean: Rows, variance: Rows) -> tuple[Each, Rows, Rows]:
    """P(g_y is the largest) for g_c ~ N(mean_c, variance_c), its gradients by mean and variance.

    S = ∫ φ(z_y)/s_y Π_{c≠y} Φ(z_c) dg, z_c = (g − mean_c)/s_c. Below `low` a class exceeds g almost
    surely, so no Φ here is below Φ(−5.5): no logarithms are needed.
    """
    mean = mean - jnp.max(mean, axis=0)
    sd = _scale(mean, variance)
    own = jnp.arange(len(mean)).reshape(-1, *(1,) * y.ndim) == y
    own_mean, own_sd = (jnp.sum(jnp.where(own, part, 0.0), axis=0) for part in (mean, sd))
    low, high = jnp.max(mean - REACH * sd, axis=0), own_mean + REACH * own_sd
    inverse = 1 / sd

    def at(g: Each, weight: Each) -> tuple[Each, Rows, Rows]:
        z = (g - mean) * inverse
        cdf, density = cdf_and_density(z)
        share = weight / own_sd * jnp.prod(jnp.where(own, density, cdf), axis=0)
        hazard = jnp.where(own, 0.0, density / cdf * inverse)
        rate = jnp.sum(hazard, axis=0)  # (log ΠΦ)′: by parts, what moving y's own Gaussian does
        by_mean = share * jnp.where(own, rate, -hazard)
        return share, by_mean, by_mean * z

    zero = (jnp.zeros_like(low), jnp.zeros_like(mean), jnp.zeros_like(mean))
    integrals = _over_nodes(at, zero)
    win, by_mean, by_scale = panels(integrals, mean, sd, low, high, zero, _most(len(mean)))
    return win, by_mean, 0.5 * inverse * by_scale


@jax.custom_jvp
def win_probability(
    y: Int[Array, ""], mean: Float[Array, "C"], variance: Float[Array, "C"]
) -> Float[Array, ""]:
    """P(g_y is the largest of all), g_c ~ N(mean_c, variance_c) independent."""
    return _win(y, mean, variance)[0]


@win_probability.defjvp
def _win_jvp(primals, tangents):
    value, by_mean, by_variance = _win(*primals)
    return value, by_mean @ tangents[1] + by_variance @ tangents[2]


@rows_last
def win_probabilities(mean: Rows, variance: Rows) -> Rows:
    """P(g_k is the largest) for every k at once; they sum to one."""
    mean = mean - jnp.max(mean, axis=0)
    sd = _scale(mean, variance)
    inverse = 1 / sd

    def at(g: Each, weight: Each) -> Rows:
        cdf, density = cdf_and_density((g - mean) * inverse)
        return weight * jnp.prod(cdf, axis=0) * density / cdf * inverse

    low, high = jnp.max(mean - REACH * sd, axis=0), jnp.max(mean + REACH * sd, axis=0)
    zero = jnp.zeros_like(mean)
    wins = panels(_over_nodes(at, zero), mean, sd, low, high, zero, _most(len(mean)))
    return wins / jnp.sum(wins, axis=0)
