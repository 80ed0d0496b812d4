"""What one chunk gives to inference: the sum of its sites, seen in the space of the M features.

Each function here is one compiled pass over one chunk; `data.reduce` adds the results up. Rows are
handled in the chunk's own precision, and what leaves is float64.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from gpclf.data import Chunk
from gpclf.gaussian import Moments, Natural
from gpclf.likelihoods import Sites
from gpclf.model import Prepared
from gpclf.precision import cast


class Statistics(NamedTuple):
    """Sums over rows: s Σ wℓ, and the natural parameters s Σ wλa, s Σ wτaaᵀ of their sites."""

    bound: Float[Array, ""] | float
    linear: Float[Array | np.ndarray, "C M"]
    precision: Float[Array | np.ndarray, "C M M"]
    not_finite: Int[Array, ""] | int  # rows whose sites are not numbers

    def target(self) -> Natural:
        """The sites times the prior N(0, I): where a full closed-form step goes."""
        return with_prior(Natural(self.linear, self.precision))


def with_prior(sites: Natural) -> Natural:
    """The product of sites and the prior N(0, I), as NumPy arrays."""
    precision = np.asarray(sites.precision)
    return Natural(np.asarray(sites.linear), precision + np.eye(precision.shape[-1]))


def _summed_sites(
    A: Float[Array, "*G B M"], sites: Sites, weight: Float[Array, "B"]
) -> tuple[Float[Array, "C M"], Float[Array, "C M M"]]:
    """Σ wλa and Σ wτaaᵀ for each latent function."""

    def one(A, tau, lam):
        return A.T @ (weight * lam), ((weight * tau)[:, None] * A).T @ A

    axis = None if A.ndim == 2 else 0
    return jax.vmap(one, in_axes=(axis, 1, 1))(A, sites.precision, sites.linear)


def _double(tree):
    return cast(tree, jnp.float64)


@jax.jit
def visit(prepared: Prepared, q: Moments, chunk: Chunk) -> tuple[Statistics, Sites]:
    """The bound and the fresh sites of a chunk under q: summed, and row by row."""
    prepared, q = cast((prepared, q), chunk.X.dtype)
    mu, nu = prepared.marginals(q, chunk.X)
    sites = prepared.sites(chunk.y, mu, nu)
    bounds = prepared.bounds(chunk.y, mu, nu)
    finite = jnp.isfinite(bounds) & jnp.all(
        jnp.isfinite(sites.precision) & jnp.isfinite(sites.linear), axis=1
    )
    weight = chunk.scale * chunk.weight
    linear, precision = _summed_sites(prepared.features(chunk.X), sites, weight)
    bound = jnp.sum(weight * bounds, dtype=jnp.float64)
    return Statistics(bound, *_double((linear, precision)), jnp.sum(~finite)), sites


@jax.jit
def held(prepared: Prepared, sites: Sites, chunk: Chunk) -> Natural:
    """The natural parameters of sites that are held while the features change."""
    prepared = cast(prepared, chunk.X.dtype)
    sums = _summed_sites(prepared.features(chunk.X), sites, chunk.scale * chunk.weight)
    return Natural(*_double(sums))


@jax.jit
def held_gradient(prepared: Prepared, sites: Sites, chunk: Chunk, by: Natural) -> Prepared:
    """The gradient by the features of ⟨by, held(…)⟩."""

    def inner(prepared: Prepared) -> Float[Array, ""]:
        prepared, g = cast((prepared, by), chunk.X.dtype)
        A = prepared.features(chunk.X)
        weight = chunk.scale * chunk.weight
        # ⟨G, Σ wτaaᵀ⟩ = Σ wτ aᵀGa, of which G a is also half the gradient: take it once, and hold it
        axis = None if A.ndim == 2 else 0
        product = jax.vmap(jnp.matmul, in_axes=(axis, 0))(A, jax.lax.stop_gradient(g.precision))
        pull = 2 * sites.precision.T[:, :, None] * product
        pull = pull + sites.linear.T[:, :, None] * g.linear[:, None, :]
        pull = jax.lax.stop_gradient(weight[:, None] * pull)
        return jnp.sum(A * (jnp.sum(pull, axis=0) if A.ndim == 2 else pull), dtype=jnp.float64)

    return jax.grad(inner)(prepared)


@jax.jit
def bound_gradient(
    prepared: Prepared, q: Moments, chunk: Chunk
) -> tuple[Float[Array, ""], Prepared, Moments]:
    """s Σ wℓ of a chunk, with its gradient by everything that is prepared and by q."""

    def total(prepared: Prepared, q: Moments) -> Float[Array, ""]:
        prepared, q = cast((prepared, q), chunk.X.dtype)
        mu, nu = prepared.marginals(q, chunk.X)
        bounds = prepared.bounds(chunk.y, mu, nu)
        return jnp.sum(chunk.scale * chunk.weight * bounds, dtype=jnp.float64)

    value, (by_prepared, by_q) = jax.value_and_grad(total, argnums=(0, 1))(prepared, q)
    return value, by_prepared, by_q


def statistics_from_gradient(value: float, by_q: Moments, q: Moments) -> Statistics:
    """The same sums as `visit`, read off the gradient by q: −2 ∂/∂S, and ∂/∂m − 2 ∂/∂S m."""
    by_S = np.asarray(by_q.excess)
    precision = -(by_S + np.swapaxes(by_S, -1, -2))
    linear = np.asarray(by_q.mean) + np.einsum("cij,cj->ci", precision, q.mean)
    return Statistics(value, linear, precision, int(np.sum(~np.isfinite(linear))))
