"""E softmax(h(f)) as a race: softmax(h)_k is the chance that h_k + Gumbel noise is the largest.

The largest of all is at most t with probability Π_c ψ_c(t), ψ_c(t) = E exp(−e^(h_c−t)), and class k
holds it with the share of its hazard: p_k = ∫ (ψ_k′/ψ_k)(t) Π_c ψ_c(t) dt. One integral for all
classes, deterministic, each row on its own, in logarithms: small probabilities keep their digits.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from gpclf.quadrature.graded import Points, Scalar, graded
from gpclf.quadrature.gumbel_law import SPREAD, law
from gpclf.quadrature.panels import panels

CENTRE = 0.577  # the mean of Gumbel noise
TAIL = 16.0  # its right tail, e^−t, is 1e-7 there
MOST = 48  # panels
LATENT_NODES = 48
SMOOTHER = 1.15  # noise leaves no sharp bend: panels may be so much wider
MOST_LOG = 5.0  # of H = log(−log ψ): what is larger means no chance at all
LEAST_UNIT = -60.0  # of log p_k, as float32 can carry it beside those near 0

Latent = Float[Array, "C"]
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
    """log ∫ softmax(f) N(f; μ, ν) df, with H = log(−log ψ) of each class from its series.

    p_k = ∫ −H_k′ exp(H_k − Σ_c exp H_c) dt as far as Σ exp H counts; beyond, exp H_k is left.
    """
    mu = mu - jnp.max(mu)
    laws = law(mu, jnp.sqrt(nu))
    low, high = jnp.max(laws.low), jnp.max(laws.high)
    left_over = laws(high[None])[0][:, 0]
    unit = jnp.maximum(left_over, LEAST_UNIT)  # so that no class is too small for a float

    def integrals(t: Points, weights: Points) -> Latent:
        H, slope = laws(t)
        hazard = jnp.exp(jnp.minimum(H, MOST_LOG) - unit[:, None])
        return (slope * hazard) @ (weights * jnp.exp(-jnp.exp(unit) @ hazard))

    centres, scales = mu + CENTRE, SMOOTHER * laws.width
    total = panels(integrals, centres, scales, low, high, jnp.zeros_like(mu), MOST)
    within = jnp.log(jnp.maximum(total, jnp.finfo(mu.dtype).tiny)) + unit
    return jax.nn.log_softmax(jnp.logaddexp(within, left_over))


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
