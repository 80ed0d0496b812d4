"""What one chunk gives to inference: the sum of its sites, seen in the space of the M features.

Each function here is one compiled pass over one chunk; `data.reduce` adds the results up. Rows are
handled in the chunk's own precision, and sums leave as float64. NumPy rounds what goes in and
widens what comes out: XLA would take a hundredth of a second to compile each of these.
"""

from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from gpclf.compilation import program, program_of_two
from gpclf.data import Chunk
from gpclf.gaussian import Moments, Natural
from gpclf.inputs import Features, Inputs, Nodes
from gpclf.likelihoods.base import RowBound, Sites
from gpclf.model import Prepared, for_each
from gpclf.precision import cast, rounded

T = TypeVar("T")


def _nodes(inputs: Inputs, chunk: Chunk) -> Nodes:
    return inputs.nodes(chunk.X, chunk.std, chunk.y)


def _new_features(prepared: Prepared, chunk: Chunk) -> Features:
    """Of every place of every row."""
    prepared = cast(prepared, chunk.X.dtype)
    return prepared.features(_nodes(prepared.model.inputs, chunk).X)


def features_of(prepared: Prepared, chunk: Chunk) -> Features:
    """Those kept with the chunk, or new ones."""
    return _new_features(prepared, chunk) if chunk.features is None else chunk.features


_kept = program_of_two(_new_features)


def _long(prepared: Prepared) -> bool:
    """Whether a pass takes so long that faster code is worth waiting for."""
    return prepared.model.inputs.places > 1


def _at_places(prepared: Prepared, of_rows: Any) -> Any:
    """What belongs to rows, once for each of their places."""
    places = prepared.model.inputs.places
    if places == 1:
        return of_rows
    return jax.tree.map(lambda leaf: jnp.repeat(leaf, places, axis=0), of_rows)


def weights_of(prepared: Prepared, chunk: Chunk) -> Float[Array, "R"]:
    """s·w of every place; the shares of a row's places are in their sites."""
    return _at_places(prepared, chunk.scale * chunk.weight)


def finite_rows(values: Array, *of_places: Any) -> Bool[Array, "B"]:
    """Whether all numbers of a row are: its bound, and what belongs to its places."""
    nothing = 0 * values  # not a number where a value is none: one sum to look at
    for part in of_places:
        nothing = nothing + jnp.sum(0 * part.reshape(len(values), -1), axis=1)
    return nothing == 0


def with_features(prepared: Prepared, chunk: Chunk) -> Chunk:
    """The chunk and its features: for several passes over it under one kernel."""
    return replace(chunk, features=_kept(_long(prepared), rounded(prepared, chunk.X.dtype), chunk))


def blank_features(prepared: Prepared, chunk: Chunk) -> Features:
    """Zeros in the place of features; nothing is compiled."""
    shapes = jax.eval_shape(_new_features, rounded(prepared, chunk.X.dtype), chunk)
    return jax.device_put(jax.tree.map(lambda of: np.zeros(of.shape, of.dtype), shapes))


class Statistics(NamedTuple):
    """Sums over rows: s Σ wℓ, and the natural parameters s Σ wλa, s Σ wτaaᵀ of their sites."""

    bound: Float[Array | np.ndarray, ""]
    linear: Float[Array | np.ndarray, "C M"]
    precision: Float[Array | np.ndarray, "C M M"]
    not_finite: Int[Array | np.ndarray, ""]  # rows whose sites are not numbers

    def target(self) -> Natural:
        """The sites times the prior N(0, I): where a full closed-form step goes."""
        return with_prior(Natural(self.linear, self.precision))


def with_prior(sites: Natural) -> Natural:
    """The product of sites and the prior N(0, I), as NumPy arrays."""
    precision = np.asarray(sites.precision)
    return Natural(np.asarray(sites.linear), precision + np.eye(precision.shape[-1]))


def summed_sites(
    A: Float[Array, "*G R M"], sites: Sites, weight: Float[Array, "R"]
) -> tuple[Float[Array, "C M"], Float[Array, "C M M"]]:
    """Σ wλa and Σ wτaaᵀ for each latent function."""

    def one(own):
        own_A, tau, lam = own
        rows = A if own_A is None else own_A
        return rows.T @ (weight * lam), ((weight * tau)[:, None] * rows).T @ rows

    own_A = None if A.ndim == 2 else A
    return for_each(one, (own_A, sites.precision.T, sites.linear.T))


def double(tree: T) -> T:
    """In float64, inside a program."""
    return cast(tree, jnp.float64)


def widened(tree: T) -> T:
    """What leaves a chunk, as NumPy arrays."""
    return rounded(tree, np.dtype(np.float64))


def visit(prepared: Prepared, q: Moments, chunk: Chunk) -> tuple[Statistics, Sites]:
    """The bound and the fresh sites of a chunk under q: summed, and place by place."""
    if prepared.model.inputs.bends:
        seen = survey(prepared, q, chunk)
        return seen.statistics(q), seen.sites
    statistics, sites = _visit(_long(prepared), *rounded((prepared, q), chunk.X.dtype), chunk)
    return widened(statistics), sites


@program_of_two
def _visit(prepared: Prepared, q: Moments, chunk: Chunk) -> tuple[Statistics, Sites]:
    features = features_of(prepared, chunk)
    mu, nu = prepared.marginals(features, q)
    y, inputs = _at_places(prepared, chunk.y), prepared.model.inputs
    sites = prepared.sites(y, mu, nu)
    each = prepared.bounds(y, mu, nu)
    log_weight = _nodes(inputs, chunk).log_weight
    bounds = inputs.joined(each, log_weight)
    if inputs.places > 1:
        share = jax.grad(lambda each: jnp.sum(inputs.joined(each, log_weight)))(each)[:, None]
        sites = Sites(*(share * part for part in sites))
    finite = finite_rows(bounds, *sites)
    linear, precision = summed_sites(features.A, sites, weights_of(prepared, chunk))
    bound = jnp.sum(chunk.scale * chunk.weight * bounds, dtype=jnp.float64)
    return Statistics(bound, linear, precision, jnp.sum(~finite)), sites


def held(prepared: Prepared, sites: Sites, chunk: Chunk) -> Natural:
    """The natural parameters of sites that are held while the features change."""
    return widened(_held(_long(prepared), rounded(prepared, chunk.X.dtype), sites, chunk))


@program_of_two
def _held(prepared: Prepared, sites: Sites, chunk: Chunk) -> Natural:
    A = features_of(prepared, chunk).A
    return Natural(*summed_sites(A, sites, weights_of(prepared, chunk)))


@program
def curvature(
    prepared: Prepared, sites: Sites, way: Float[Array | np.ndarray, "C K"], chunk: Chunk
) -> Float[Array, "C K"]:
    """s Σ w max(τ, 0) a aᵀp: how the rows bend the bound of the mean along p; two products."""
    A = features_of(cast(prepared, chunk.X.dtype), chunk).A
    weight = weights_of(prepared, chunk)

    def one(own):
        own_A, tau, p = own
        rows = A if own_A is None else own_A
        return rows.T @ (weight * jnp.maximum(tau, 0.0) * (rows @ p))

    own_A = None if A.ndim == 2 else A
    return double(for_each(one, (own_A, sites.precision.T, cast(jnp.asarray(way), A.dtype))))


@program
def definite(prepared: Prepared, q: Moments, sites: Sites, chunk: Chunk) -> Sites:
    """The sites with negative precisions set to 0, each with the slope at μ that it had."""
    prepared, q = cast((prepared, q), chunk.X.dtype)
    mu, _ = prepared.marginals(features_of(prepared, chunk), q)
    negative = jnp.minimum(sites.precision, 0.0)
    return Sites(sites.precision - negative, sites.linear - negative * mu)


class Survey(NamedTuple):
    """Everything one look at a chunk can tell: s Σ wℓ, its gradients, and the rows' own sites."""

    bound: Float[Array | np.ndarray, ""]
    not_finite: Int[Array | np.ndarray, ""]
    by_q: Moments
    by_own: tuple[RowBound, Inputs]  # by parameters of their own, but for what features tell
    by_prepared: Prepared | None  # what else there is, but for what features tell
    by_features: Features  # place by place, for `gradient`
    sites: Sites  # place by place

    def statistics(self, q: Moments) -> Statistics:
        """The same sums as `visit`, read off the gradient by q: −2 ∂/∂S, and ∂/∂m − 2 ∂/∂S m."""
        by_S = np.asarray(self.by_q.excess)
        precision = -(by_S + np.swapaxes(by_S, -1, -2))
        linear = np.asarray(self.by_q.mean) + np.einsum("cij,cj->ci", precision, q.mean)
        return Statistics(self.bound, linear, precision, self.not_finite)

    def sums(self) -> "Survey":
        """Without what belongs to single rows."""
        return self._replace(by_features=None, sites=None)


def survey(prepared: Prepared, q: Moments, chunk: Chunk) -> Survey:
    """The bound of a chunk, its gradients, and the sites that they are."""
    seen = _survey(_long(prepared), *rounded((prepared, q), chunk.X.dtype), chunk)
    return Survey(*widened(seen[:-2]), *seen[-2:])


@program_of_two
def _survey(prepared: Prepared, q: Moments, chunk: Chunk) -> Survey:
    weight, inputs = chunk.scale * chunk.weight, prepared.model.inputs
    y = _at_places(prepared, chunk.y)
    features = features_of(prepared, chunk)
    (mu, nu), pull = jax.vjp(prepared.marginals, features, q)

    def extra(prepared: Prepared, features: Features, q: Moments) -> Array:
        return prepared.extra(features, q, chunk.X, chunk.std)

    pull_extra = None
    if inputs.bends:
        more, pull_extra = jax.vjp(extra, prepared, features, q)
        nu = nu + more

    def bounds(own: tuple[RowBound, Inputs], mu: Array, nu: Array) -> Array:
        likelihood, inputs = own
        log_weight = _nodes(inputs, chunk).log_weight
        return inputs.joined(jax.vmap(likelihood.bound)(y, mu, nu), log_weight)

    values, pull_bounds = jax.vjp(bounds, (prepared.model.likelihood, inputs), mu, nu)
    _, by_mu, by_nu = pull_bounds(jnp.ones_like(values))
    by_own, _, _ = pull_bounds(weight)
    weights = weights_of(prepared, chunk)[:, None]
    by_features, by_q = pull((weights * by_mu, weights * by_nu))
    by_prepared = None
    if pull_extra is not None:
        by_prepared, *more = pull_extra(weights * by_nu)
        by_features, by_q = jax.tree.map(jnp.add, (by_features, by_q), tuple(more))
    tau = -2 * by_nu
    finite = finite_rows(values, by_mu, by_nu)
    return Survey(
        jnp.sum(weight * values, dtype=jnp.float64),
        jnp.sum(~finite),
        by_q,
        by_own,
        by_prepared,
        by_features,
        Sites(tau, by_mu + tau * mu),
    )


def gradient(
    prepared: Prepared, by_features: Features, by_held: Natural | None, sites: Sites, chunk: Chunk
) -> Prepared:
    """The gradient by what is prepared, from the one by the features and the one by `held(…)`.

    None in its place: q itself is held, and nothing reaches θ through it.
    """
    dtype = chunk.X.dtype
    rest = (by_features, rounded(by_held, dtype), sites, chunk)
    return widened(_gradient(_long(prepared), rounded(prepared, dtype), *rest))


@program_of_two
def _gradient(
    prepared: Prepared, by_features: Features, by_held: Natural | None, sites: Sites, chunk: Chunk
) -> Prepared:
    features, pull = jax.vjp(lambda prepared: _new_features(prepared, chunk), prepared)
    if by_held is None:
        return pull(by_features)[0]
    A = features.A if chunk.features is None else chunk.features.A
    weight = weights_of(prepared, chunk)

    def through_sites(rows, own):
        """By a: wλ ∂/∂h + 2wτ ∂/∂Λ a."""
        tau, lam, by_linear, by_precision = own
        return (weight * lam)[:, None] * by_linear + 2 * (weight * tau)[:, None] * (
            rows @ by_precision
        )

    each = (sites.precision.T, sites.linear.T, by_held.linear, by_held.precision)
    if A.ndim == 2:
        by_A, _ = jax.lax.scan(
            lambda total, own: (total + through_sites(A, own), None), by_features.A, each
        )
    else:
        by_A = by_features.A + for_each(lambda own: through_sites(own[0], own[1:]), (A, *each))
    return pull(by_features._replace(A=by_A))[0]
