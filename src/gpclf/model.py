"""Model(kernel, likelihood, inputs): what is assumed, without data and without state.

`prepare` turns it, with inducing points Z, into everything a row needs (`Prepared`). It is the one
place where M×M algebra on the kernel happens.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree, Shaped

from gpclf.compilation import PLAIN, program
from gpclf.gaussian import Moments
from gpclf.inputs import Features, Inputs, Whitening
from gpclf.kernels import Kernel
from gpclf.likelihoods.base import RowBound, Sites
from gpclf.linalg import cholesky, lower_inverse, lower_inverse_pullback

Rows = Float[Array, "B D"]
Marginals = Float[Array, "B C"]
Points = Float[Array | np.ndarray, "... M D"]  # one set, or one for each function
Labels = PyTree[Shaped[Array, "B"]]


class Model(eqx.Module):
    """Latent functions f_c ~ GP(0, k), labels y ~ p(y | f).

    All functions have one kernel, or its arrays carry a leading axis of one entry per function;
    so it is with the inducing points Z (M, D), whatever the kernel does.
    """

    kernel: Kernel
    likelihood: RowBound
    inputs: Inputs
    shared_kernel: bool = eqx.field(static=True, default=True)
    shared_points: bool = eqx.field(static=True, default=True)

    @property
    def shared(self) -> bool:
        """Whether all functions have the same features: one kernel and one Z."""
        return self.shared_kernel and self.shared_points

    def log_prior(self) -> Float[Array, ""]:
        """What is expected of the kernel, or of all of them, and inputs before any row is seen."""
        if self.shared_kernel:
            of_kernels = self.kernel.log_prior()
        else:
            of_kernels = jnp.sum(jax.vmap(lambda kernel: kernel.log_prior())(self.kernel))
        return of_kernels + self.inputs.log_prior()


class Theta(NamedTuple):
    """What hyper-parameter optimisation moves."""

    model: Model
    Z: Points


class Prepared(eqx.Module):
    """A model seen from its inducing points."""

    model: Model
    Z: Points
    whitening: Whitening

    def features(self, X: Rows) -> Features:
        """What the kernel makes of places: once if shared, else for each latent function."""

        def one(kernel, Z, whitening):
            return self.model.inputs.features(kernel, Z, whitening, X)

        parts = (*_own_parts(self.model, self.Z), self.whitening)
        return one(*parts) if self.model.shared else for_each(lambda own: one(*own), parts)

    def marginals(self, features: Features, q: Moments) -> tuple[Marginals, Marginals]:
        """μ and ν of every place and latent function."""

        def one(features, q):
            mu, nu = self.model.inputs.marginals(features, q)
            # rounding can leave ν a little below 0: keep it at what the precision resolves
            return mu, jnp.maximum(nu, jnp.finfo(nu.dtype).eps * features.diagonal)

        shared = self.model.shared
        if len(q.excess) < len(q.mean):  # one covariance, and features, for all functions
            _, nu = one(features, jax.tree.map(lambda leaf: leaf[0], q))
            mu = features.A @ q.mean.T
            return mu, jnp.broadcast_to(nu[:, None], mu.shape)
        mu, nu = for_each(
            lambda own: one(features if shared else own[0], own[1]),
            (None if shared else features, q),
        )
        return mu.T, nu.T

    def nodes(self, n_rows: int) -> int:
        """How many nodes so many rows have together."""
        return n_rows * self.model.inputs.places

    @property
    def sites_say_all(self) -> bool:
        """Whether the bound reaches q through the marginals of rows alone."""
        return not self.model.inputs.bends

    def spread(
        self, features: Features, q: Moments, X: Rows, std: Any
    ) -> tuple[Marginals, Callable] | None:
        """What errors of the rows add to ν through the mean, and how to pull gradients back.

        By (self, features, q); None where nothing is added.
        """
        if self.sites_say_all:
            return None
        return jax.vjp(lambda own, f, q: own.extra(f, q, X, std), self, features, q)

    def extra(self, features: Features, q: Moments, X: Rows, std: Any) -> Marginals:
        """What the errors of the rows add to ν, for every latent function."""
        inputs, shared = self.model.inputs, self.model.shared

        def reach(kernel, Z):
            return inputs.reach(kernel, Z, X, std)

        def one(own: Any, q: Moments) -> Float[Array, "B"]:
            kernel, Z, whitening, common, features = own
            return inputs.extra(kernel, Z, whitening, common, features, q, X, std)

        kernel, Z = _own_parts(self.model, self.Z)
        common = (reach if shared else jax.vmap(reach))(kernel, Z)
        parts = (kernel, Z, self.whitening, common, features)
        return for_each(
            lambda own: one(parts if shared else own[0], own[1]),
            (None if shared else parts, q),
        ).T

    def bounds(self, y: Labels, mu: Marginals, nu: Marginals) -> Float[Array, "B"]:
        """ℓ of every place."""
        return jax.vmap(self.model.likelihood.bound)(y, mu, nu)

    def sites(self, y: Labels, mu: Marginals, nu: Marginals) -> Sites:
        """τ and λ of every place and latent function."""
        return jax.vmap(self.model.likelihood.sites)(y, mu, nu)


def _own_parts(model: Model, Z: Points) -> tuple[Kernel, Points]:
    """Kernel and Z: one of each, or as soon as functions differ in either both for every one."""
    if model.shared_kernel and not model.shared_points:
        return one_per_function(model.kernel, len(Z)), Z
    if model.shared_points and not model.shared_kernel:
        return model.kernel, one_per_function(Z, len(jax.tree.leaves(model.kernel)[0]))
    return model.kernel, Z


def _kernel_matrices(model: Model, Z: Points) -> Float[Array, "*G M M"]:
    def one(kernel: Kernel, Z: Any) -> Float[Array, "M M"]:
        return kernel.matrix(Z, Z)

    return (one if model.shared else jax.vmap(one))(*_own_parts(model, Z))


def _pull_back_kernel(model: Model, Z: Points, by_K: Float[Array, "*G M M"]):
    return jax.vjp(_kernel_matrices, model, Z)[1](by_K)


_kernel_program = program(_kernel_matrices, PLAIN)
_kernel_pullback = program(_pull_back_kernel, PLAIN)


def prepare(model: Model, Z: Points, jitter: float) -> tuple[Prepared, float]:
    """Whiten the inducing variables, in float64; also the largest jitter that was needed."""
    Z = jax.device_put(Z)
    K = np.asarray(_kernel_program(model, Z))
    factors = [cholesky(one, jitter) for one in (K[None] if model.shared else K)]
    roots = np.stack([lower_inverse(L) for L, _ in factors])
    roots = roots[0] if model.shared else roots
    whitening = jax.device_put(Whitening(roots, roots.sum(-1)))
    return Prepared(model, Z, whitening), max(used for _, used in factors)


def prepare_pullback(prepared: Prepared, by: Prepared) -> tuple[Model, Float[np.ndarray, "*G M D"]]:
    """The gradient by (model, Z) of something whose gradient by `prepare`'s result is `by`."""
    W, by_W, by_ones = (
        np.asarray(leaf)
        for leaf in (prepared.whitening.matrix, by.whitening.matrix, by.whitening.ones)
    )
    by_W = by_W + by_ones[..., None]
    if prepared.model.shared:
        by_K = lower_inverse_pullback(W, by_W)
    else:
        by_K = np.stack([lower_inverse_pullback(w, g) for w, g in zip(W, by_W, strict=True)])
    through_K = _kernel_pullback(prepared.model, prepared.Z, by_K)
    return jax.tree.map(np.add, jax.tree.map(np.asarray, (by.model, by.Z)), through_K)


def for_each(function: Callable, stacked: Any) -> Any:
    """`function` of every entry along the first axis, one after the other, stacked.

    For work on rows, of which one function's share fills the cache: all functions at once would
    move every intermediate result through main memory, at a third of the speed.
    """
    if jax.tree.leaves(stacked)[0].shape[0] == 1:
        return jax.tree.map(
            lambda leaf: leaf[None], function(jax.tree.map(lambda leaf: leaf[0], stacked))
        )
    return jax.lax.map(function, stacked)


def one_per_function(tree: Any, count: int) -> Any:
    """`count` copies of every array of `tree`, stacked: the start of unshared parameters."""
    return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (count, *jnp.shape(leaf))), tree)
