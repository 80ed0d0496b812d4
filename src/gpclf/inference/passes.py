"""What one chunk gives to inference: the sum of its sites, seen in the space of the M features.

Each function here is one compiled pass over one chunk; `Rows.sum` adds the results up. Rows are
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
from gpclf.data import Chunk, Rows
from gpclf.gaussian import Moments, Natural
from gpclf.inputs import Features, Inputs, Nodes, Own
from gpclf.kernels import Constant
from gpclf.likelihoods.base import RowBound, Sites
from gpclf.model import Prepared, for_each
from gpclf.precision import cast, rounded

T = TypeVar("T")


def _nodes(inputs: Inputs, chunk: Chunk) -> Nodes:
    return inputs.nodes(chunk.X, chunk.std, chunk.y, Own(chunk.rows, chunk.standard))


def _new_features(prepared: Prepared, chunk: Chunk) -> Features:
    """Of every node of every row."""
    prepared = cast(prepared, chunk.X.dtype)
    return prepared.features(_nodes(prepared.model.inputs, chunk).X)


def features_of(prepared: Prepared, chunk: Chunk) -> Features:
    """Those kept with the chunk, or new ones."""
    return _new_features(prepared, chunk) if chunk.features is None else chunk.features


_kept = program_of_two(_new_features)


def kernel_free(prepared: Prepared, chunk: Chunk) -> Prepared:
    """Without the kernel where a chunk has its features: what is compiled then serves any."""
    model = prepared.model
    if chunk.features is None or not (model.shared and prepared.sites_say_all):
        return prepared
    return replace(prepared, model=replace(model, kernel=Constant()))


def weights_of(prepared: Prepared, chunk: Chunk) -> Float[Array, "R"]:
    """s·w of every node; the shares of a row's nodes are in their sites."""
    return prepared.model.inputs.at_nodes(chunk.scale * chunk.weight)


def finite_rows(values: Array, *of_nodes: Any) -> Bool[Array, "B"]:
    """Whether all numbers of a row are: its bound, and what belongs to its nodes."""
    nothing = 0 * values  # not a number where a value is none: one sum to look at
    for part in of_nodes:
        nothing = nothing + jnp.sum(0 * part.reshape(len(values), -1), axis=1)
    return nothing == 0


def with_features(prepared: Prepared, chunk: Chunk) -> Chunk:
    """The chunk and its features: for several passes over it under one kernel."""
    return replace(
        chunk, features=_kept(prepared.model.inputs.costly, rounded(prepared, chunk.X.dtype), chunk)
    )


def with_kept_features(prepared: Prepared, rows: Rows) -> Rows:
    """Rows with their features under one kernel, where there is room for them."""
    own = 1 if prepared.model.shared else len(prepared.whitening.matrix)
    floats = own * prepared.Z.shape[-2] * prepared.nodes(1)
    return rows.keeping(lambda chunk: with_features(prepared, chunk), floats)


def blank_features(prepared: Prepared, chunk: Chunk) -> Features:
    """Zeros in the place of features; nothing is compiled."""
    shapes = jax.eval_shape(_new_features, rounded(prepared, chunk.X.dtype), chunk)
    return jax.device_put(jax.tree.map(lambda of: np.zeros(of.shape, of.dtype), shapes))


class Statistics(NamedTuple):
    """Sums over rows: s Σ wℓ, and the natural parameters s Σ wλa, s Σ wτaaᵀ of their sites."""

    bound: Float[Array | np.ndarray, ""]
    linear: Float[Array | np.ndarray, "C M"]
    precision: Float[Array | np.ndarray, "G M M"]
    not_finite: Int[Array | np.ndarray, ""]  # rows whose sites are not numbers

    def target(self) -> Natural:
        """The sites times the prior N(0, I): where a full closed-form step goes."""
        return with_prior(Natural(self.linear, self.precision))


def with_prior(sites: Natural) -> Natural:
    """The product of sites and the prior N(0, I), as NumPy arrays."""
    precision = np.asarray(sites.precision)
    return Natural(np.asarray(sites.linear), precision + np.eye(precision.shape[-1]))


def as_q_takes(sites: Sites, mu: Float[Array, "R C"], q: Moments) -> Sites:
    """The sites; where functions have an S in common, with one τ for all, the mean of theirs.

    Each keeps the slope at μ that it had.
    """
    if len(q.excess) == len(q.mean):
        return sites
    tau = jnp.mean(sites.precision, axis=1, keepdims=True)
    return Sites(tau, sites.linear + (tau - sites.precision) * mu)


def summed_sites(
    A: Float[Array, "*G R M"], sites: Sites, weight: Float[Array, "R"]
) -> tuple[Float[Array, "C M"], Float[Array, "G M M"]]:
    """Σ wλa and Σ wτaaᵀ for each latent function, or of one τ for all."""
    if sites.precision.shape[1] < sites.linear.shape[1]:
        linear = (weight[:, None] * sites.linear).T @ A
        return linear, (((weight[:, None] * sites.precision) * A).T @ A)[None]

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


def step_pass(prepared: Prepared, q: Moments, chunk: Chunk) -> tuple[Statistics, Sites]:
    """The bound and the fresh sites of a chunk under q: summed, and node by node."""
    if not prepared.sites_say_all:
        found = gradient_pass(prepared, q, chunk)
        return found.statistics(q), found.sites
    fast = prepared.model.inputs.costly
    ready = rounded((kernel_free(prepared, chunk), q), chunk.X.dtype)
    statistics, sites = _step_pass(fast, *ready, chunk)
    return widened(statistics), sites


@program_of_two
def _step_pass(prepared: Prepared, q: Moments, chunk: Chunk) -> tuple[Statistics, Sites]:
    features = features_of(prepared, chunk)
    mu, nu = prepared.marginals(features, q)
    inputs = prepared.model.inputs
    y = inputs.at_nodes(chunk.y)
    sites = as_q_takes(prepared.sites(y, mu, nu), mu, q)
    each = prepared.bounds(y, mu, nu)
    log_weight = _nodes(inputs, chunk).log_weight
    bounds, shares = inputs.joined(each, log_weight), inputs.shares(each, log_weight)
    if shares is not None:
        sites = Sites(*(shares[:, None] * part for part in sites))
    finite = finite_rows(bounds, *sites)
    linear, precision = summed_sites(features.A, sites, weights_of(prepared, chunk))
    bound = jnp.sum(chunk.scale * chunk.weight * bounds, dtype=jnp.float64)
    return Statistics(bound, linear, precision, jnp.sum(~finite)), sites


def held_sum(prepared: Prepared, sites: Sites, chunk: Chunk) -> Natural:
    """The natural parameters of sites that are held while the features change."""
    ready = rounded(kernel_free(prepared, chunk), chunk.X.dtype)
    return widened(_held_sum(prepared.model.inputs.costly, ready, sites, chunk))


@program_of_two
def _held_sum(prepared: Prepared, sites: Sites, chunk: Chunk) -> Natural:
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


class Pass(NamedTuple):
    """Everything one pass over a chunk can tell: s Σ wℓ, its gradients, and the rows' own sites."""

    bound: Float[Array | np.ndarray, ""]
    not_finite: Int[Array | np.ndarray, ""]
    by_q: Moments
    by_own: tuple[RowBound, Inputs]  # by parameters of their own, but for what features tell
    by_prepared: Prepared | None  # what else there is, but for what features tell
    beyond: Float[Array | np.ndarray, "C M"] | None  # of ∂/∂m, what no site of a row has
    by_features: Features  # node by node, for `theta_pass`
    sites: Sites  # node by node

    def statistics(self, q: Moments) -> Statistics:
        """The same sums as `step_pass`, read off the gradient by q: −2 ∂/∂S, ∂/∂m − 2 ∂/∂S m."""
        by_S = np.asarray(self.by_q.excess)
        each = len(q.mean) // len(by_S)  # functions that have an S in common: their mean
        precision = -(by_S + np.swapaxes(by_S, -1, -2)) / each
        linear = np.asarray(self.by_q.mean) + (precision @ np.asarray(q.mean)[..., None])[..., 0]
        return Statistics(self.bound, linear, precision, self.not_finite)

    def sums(self) -> "Pass":
        """Without what belongs to single rows."""
        return self._replace(by_features=None, sites=None)


def gradient_pass(prepared: Prepared, q: Moments, chunk: Chunk) -> Pass:
    """The bound of a chunk, its gradients, and the sites that they are."""
    fast = prepared.model.inputs.costly
    ready = rounded((kernel_free(prepared, chunk), q), chunk.X.dtype)
    found = _gradient_pass(fast, *ready, chunk)
    return Pass(*widened(found[:-2]), *found[-2:])


@program_of_two
def _gradient_pass(prepared: Prepared, q: Moments, chunk: Chunk) -> Pass:
    weight, inputs = chunk.scale * chunk.weight, prepared.model.inputs
    y = inputs.at_nodes(chunk.y)
    features = features_of(prepared, chunk)
    (mu, nu), pull = jax.vjp(prepared.marginals, features, q)
    spread = prepared.spread(features, q, chunk.X, chunk.std)
    if spread is not None:
        nu = nu + spread[0]

    def bounds(own: tuple[RowBound, Inputs], mu: Array, nu: Array) -> Array:
        likelihood, inputs = own
        log_weight = _nodes(inputs, chunk).log_weight
        return inputs.joined(jax.vmap(likelihood.bound)(y, mu, nu), log_weight)

    values, pull_bounds = jax.vjp(bounds, (prepared.model.likelihood, inputs), mu, nu)
    _, by_mu, by_nu = pull_bounds(jnp.ones_like(values))
    by_own, _, _ = pull_bounds(weight)
    weights = weights_of(prepared, chunk)[:, None]
    by_features, by_q = pull((weights * by_mu, weights * by_nu))
    by_prepared = beyond = None
    if spread is not None:
        by_prepared, *more = spread[1](weights * by_nu)
        by_features, by_q = jax.tree.map(jnp.add, (by_features, by_q), tuple(more))
        beyond = more[1].mean
    tau = -2 * by_nu
    return Pass(
        jnp.sum(weight * values, dtype=jnp.float64),
        jnp.sum(~finite_rows(values, by_mu, by_nu)),
        by_q,
        by_own,
        by_prepared,
        beyond,
        by_features,
        as_q_takes(Sites(tau, by_mu + tau * mu), mu, q),
    )


def finite_in_chunk(prepared: Prepared, q: Moments, chunk: Chunk) -> Bool[np.ndarray, "B"]:
    """Whether the sites of each row are numbers: to find the first that is not."""
    found = gradient_pass(prepared, q, chunk)
    each = [np.asarray(part).reshape(len(chunk.weight), -1) for part in found.sites]
    return np.all([np.all(np.isfinite(part), axis=1) for part in each], axis=0)


def theta_pass(
    prepared: Prepared, by_features: Features, by_held: Natural | None, sites: Sites, chunk: Chunk
) -> Prepared:
    """The gradient by what is prepared, from the one by the features and the one by `held_sum(…)`.

    None in its place: q itself is held, and nothing reaches θ through it.
    """
    dtype = chunk.X.dtype
    rest = (by_features, rounded(by_held, dtype), sites, chunk)
    return widened(_theta_pass(prepared.model.inputs.costly, rounded(prepared, dtype), *rest))


@program_of_two
def _theta_pass(
    prepared: Prepared, by_features: Features, by_held: Natural | None, sites: Sites, chunk: Chunk
) -> Prepared:
    features, pull = jax.vjp(lambda prepared: _new_features(prepared, chunk), prepared)
    if by_held is None:
        return pull(by_features)[0]
    A = features.A if chunk.features is None else chunk.features.A
    weight = weights_of(prepared, chunk)

    if len(by_held.precision) < len(by_held.linear):
        by_A = (weight[:, None] * sites.linear) @ by_held.linear
        by_A = by_A + 2 * (weight[:, None] * sites.precision) * (A @ by_held.precision[0])
        return pull(by_features._replace(A=by_features.A + by_A))[0]

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
