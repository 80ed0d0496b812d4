"""E softmax(h(f)) as a race: softmax(h)_k is the chance that h_k + Gumbel noise is the largest.

The largest of all is at most t with probability Π_c ψ_c(t), ψ_c(t) = E exp(−e^(h_c−t)), and class k
holds it with the share of its hazard: p_k = ∫ (ψ_k′/ψ_k)(t) Π_c ψ_c(t) dt. One integral for all
classes, deterministic, each row on its own, in logarithms: small probabilities keep their digits.
"""

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import erf
from jaxtyping import Array, Float
from scipy.special import log_ndtr

from gpclf.likelihoods.base import Latent, Scalar
from gpclf.quadrature import Points, graded, panels

SPREAD = math.pi / math.sqrt(6)  # the standard deviation of Gumbel noise
CENTRE = 0.577  # its mean
TAIL = 16.0  # its right tail, e^−t, is 1e-7 there
MOST = 48  # panels
LATENT_NODES = 48
SMOOTHER = 1.2  # noise leaves no sharp bend: panels may be so much wider
# Nodes of N(0, 1), and of Gumbel noise at the same quantiles: the weights serve both.
NORMAL = np.linspace(-5.0, 5.0, 18)
WEIGHTS = np.exp(-0.5 * NORMAL**2) / math.sqrt(2 * math.pi) * 10.0 / 17.0
GUMBEL = -np.log(-log_ndtr(NORMAL))

Table = Float[Array, "C nodes"]


def log_expected_shares(
    law: Callable[[Points], tuple[Table, Table]],
    centres: Float[Array, "P"],
    scales: Float[Array, "P"],
    low: Scalar,
    high: Scalar,
    n_classes: int,
) -> Latent:
    """log p_k, from log ψ and log ψ′ of every class at given t, and where these bend."""

    def integrals(t: Points, weights: Points) -> Latent:
        log_psi, log_density = law(t)
        logs = log_density - log_psi + jnp.sum(log_psi, axis=0) + jnp.log(weights)
        return jax.nn.logsumexp(logs, axis=1)

    nothing = jnp.full(n_classes, jnp.finfo(low.dtype).min / 4, low.dtype)
    logs = panels(integrals, centres, scales, low, high, nothing, MOST, jnp.logaddexp)
    return jax.nn.log_softmax(logs)


def log_expected_softmax(mu: Latent, nu: Latent) -> Latent:
    """log ∫ softmax(f) N(f; μ, ν) df.

    ψ_c is the cdf of a Gaussian plus Gumbel noise: the sum over nodes of the narrower of the two,
    of the cdf of the wider.
    """
    mu, sd = mu - jnp.max(mu), jnp.sqrt(nu)
    narrow = (sd < SPREAD)[:, None]
    narrow_sd, wide_sd = jnp.where(narrow[:, 0], sd, 0.0), jnp.where(narrow, 1.0, sd[:, None])
    smallest = jnp.finfo(mu.dtype).tiny

    def law(t: Points) -> tuple[Table, Table]:
        lead = mu[:, None] - t
        reached = jnp.exp(jnp.minimum(lead, 60.0))
        psi, density = jnp.full((2, *lead.shape), smallest, mu.dtype)
        for x, gumbel, weight in zip(
            NORMAL.tolist(), GUMBEL.tolist(), WEIGHTS.tolist(), strict=True
        ):
            step = jnp.exp(x * narrow_sd)[:, None]
            z = (lead + gumbel) / wide_sd
            below = jnp.where(narrow, jnp.exp(-step * reached), 0.5 - 0.5 * erf(z * math.sqrt(0.5)))
            psi = psi + weight * below
            density = density + weight * jnp.where(narrow, step * below, jnp.exp(-0.5 * z**2))
        outside = jnp.where(narrow, lead, -jnp.log(wide_sd * math.sqrt(2 * math.pi)))
        return jnp.log(jnp.maximum(psi, smallest)), jnp.log(density) + outside

    scales = jnp.sqrt(nu + SPREAD**2)
    low = jnp.max(mu - 5.5 * sd) - 4.0
    high = jnp.max(mu + 5.5 * sd) + TAIL
    return log_expected_shares(law, mu + CENTRE, SMOOTHER * scales, low, high, mu.shape[0])


def log_expected_logistic_softmax(mu: Latent, nu: Latent) -> Latent:
    """log ∫ σ(f)/Σσ(f_c) N(f; μ, ν) df: the softmax of h = log σ(f), by nodes of f."""
    sd = jnp.sqrt(nu)
    nodes, weights = jax.vmap(graded, (0, 0, None))(mu, nu, LATENT_NODES)
    weights = weights / jnp.sum(weights, axis=1, keepdims=True)
    h = jax.nn.log_sigmoid(nodes)

    def law(t: Points) -> tuple[Table, Table]:
        def add(sums: tuple[Table, Table], node: tuple[Latent, Latent]):
            excess = jnp.exp(jnp.minimum(node[0][:, None] - t, 7.0))
            below = node[1][:, None] * jnp.exp(-excess)
            return (sums[0] + below, sums[1] + excess * below), None

        smallest = jnp.full((mu.shape[0], t.shape[0]), jnp.finfo(mu.dtype).tiny, mu.dtype)
        (psi, density), _ = jax.lax.scan(add, (smallest, smallest), (h.T, weights.T), unroll=8)
        return jnp.log(psi), jnp.log(density)

    # wherever f may be, h ends at 0: what piles up there bends on the scale of the noise
    centres = jnp.append(jnp.minimum(mu, 0.0), 0.0) + CENTRE
    scales = jnp.sqrt(jnp.append(nu, 0.0) + SPREAD**2)
    low = jnp.minimum(jnp.max(mu - 5.5 * sd), 0.0) - 4.0
    high = jnp.minimum(jnp.max(mu + 5.5 * sd), 0.0) + TAIL
    return log_expected_shares(law, centres, SMOOTHER * scales, low, high, mu.shape[0])
