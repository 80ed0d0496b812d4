"""The frozen result of a fit: inducing points, q, kernel and likelihood. It needs no data."""

from dataclasses import replace
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from gpclf.compilation import PLAIN, compiled_once, program
from gpclf.gaussian import Moments, Natural, moments
from gpclf.inference.fresh_bound import row_values
from gpclf.inputs import Features, Whitening
from gpclf.kernels import Kernel
from gpclf.likelihoods import Likelihood
from gpclf.linalg import cholesky, one_thread, plain_cholesky
from gpclf.model import Prepared, Theta, prepare
from gpclf.precision import double_precision
from gpclf.storage import describe, restore

TINY = 1e-12  # added to the diagonal of I − S: rounding must not make it negative
BOUND_ROWS = 512  # whose bounds are found at once; with errors each has many places
SAMPLE_JITTER = 1e-12  # of covariances of samples, relative: rows may be close, or the same


class Roots(eqx.Module):
    """q seen from k = k(Z, x) itself: μ = kᵀα and ν = k(x, x) − ‖Rᵀk‖², one product a function.

    R is lower triangular, RRᵀ = W(I − S)Wᵀ with W the transposed whitening. With them goes what
    they make of a constant part of k, where much cancels; None once it is known that k has no such
    part. Points after the first M are for the mean alone, and R knows nothing of them.
    """

    weights: Float[np.ndarray, "C K"]
    root: Float[np.ndarray, "G M M"]  # G: C, or 1 for all
    of_one: tuple[Float[np.ndarray, "C"], Float[np.ndarray, "G M"]] | None  # 1ᵀα and Rᵀ1


class Posterior(eqx.Module):
    """A model seen from its inducing points, and the moments of q(v) there.

    Its arrays are NumPy's, in float64 but for the roots: it can be copied, pickled and sent to
    another process.
    """

    prepared: Prepared
    q: Moments
    roots: Roots | None  # None where there are none: kernels of their own, or I − S not positive
    row_dtype: Any = eqx.field(static=True)

    @property
    def likelihood(self) -> Likelihood:
        """That of the model."""
        likelihood = self.prepared.model.likelihood
        assert isinstance(likelihood, Likelihood)  # a fit ends with all classes
        return likelihood

    @property
    def n_latent(self) -> int:
        """The number of latent functions."""
        return self.q.mean.shape[0]


def find_roots(prepared: Prepared, q: Moments, dtype: Any) -> Roots | None:
    """What prediction needs of q, where it has this form."""
    if not prepared.model.shared:
        return None
    W = np.asarray(prepared.whitening.matrix)
    size = q.excess.shape[-1]
    of_Z, roots = W[:size, :size], []
    for excess in np.asarray(q.excess):
        factor = plain_cholesky(TINY * np.eye(size) - excess)
        if factor is None:
            return None
        upper: Any = np.linalg.qr(factor.T @ of_Z, mode="r")  # better than a root of RRᵀ itself
        roots.append(upper.T)
    weights, root = np.asarray(q.mean) @ W, np.stack(roots)
    found = Roots(weights, root, (weights.sum(axis=1), root.sum(axis=1)))
    return jax.tree.map(lambda leaf: leaf.astype(dtype), found)


def parts(posterior: Posterior, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """A posterior as JSON, its arrays put into `arrays`."""
    return {
        "prepared": describe(posterior.prepared, arrays),
        "q": describe(posterior.q, arrays),
        "row_dtype": posterior.row_dtype,
    }


def from_parts(description: dict[str, Any], arrays: dict[str, np.ndarray]) -> Posterior:
    """The posterior that `parts` described."""
    prepared, q = (restore(description[name], arrays) for name in ("prepared", "q"))
    dtype = description["row_dtype"]
    return Posterior(prepared, q, find_roots(prepared, q, dtype), dtype)


def thawed(posterior: Posterior) -> tuple[Theta, Natural]:
    """What a fit can go on from: the reverse of `freeze`; each function with a covariance."""
    size = posterior.q.excess.shape[-1]
    precision = np.stack([np.eye(posterior.q.mean.shape[1])] * len(posterior.q.excess))
    for own, excess in zip(precision, posterior.q.excess, strict=True):
        inverse = np.linalg.inv(np.eye(size) + excess)
        own[:size, :size] = 0.5 * (inverse + inverse.T)
    linear = (precision @ np.asarray(posterior.q.mean)[..., None])[..., 0]
    precision = np.repeat(precision, posterior.n_latent // len(precision), axis=0)
    return Theta(posterior.prepared.model, posterior.prepared.Z), Natural(linear, precision)


def coupled(posterior: Posterior) -> Posterior:
    """Without the points that are for the mean alone, which come last."""
    size, prepared, q = posterior.q.excess.shape[-1], posterior.prepared, posterior.q
    if size == q.mean.shape[1]:
        return posterior
    W = prepared.whitening.matrix[:size, :size]
    fewer = Prepared(prepared.model, prepared.Z[:size], Whitening(W, W.sum(-1)))
    own = Moments(q.mean[:, :size], q.excess)
    return Posterior(fewer, own, find_roots(fewer, own, posterior.row_dtype), posterior.row_dtype)


@double_precision
def freeze(theta: Theta, q: Natural | Moments, jitter: float, row_dtype: Any) -> Posterior:
    """The posterior of the parameters and the q that a fit ended with."""
    with one_thread():  # else BLAS's threads and XLA's fight for the same cores
        prepared, _ = prepare(*theta, jitter)
        m = moments(q)[0] if isinstance(q, Natural) else q
        model = replace(theta.model, inputs=theta.model.inputs.without_rows())
        prepared = replace(prepared, model=model)
        prepared, m = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), (prepared, m))
        return Posterior(prepared, m, find_roots(prepared, m, row_dtype), np.dtype(row_dtype).name)


@partial(program, options=PLAIN)
def _covariance_parts(
    prepared: Prepared, X: Float[Array, "N D"]
) -> tuple[Features, Float[Array, "*G N N"]]:
    """The features of rows, and k of every row with every other: once, or for each function."""

    def one(kernel: Kernel) -> Float[Array, "N N"]:
        return kernel.matrix(X, X)

    model = prepared.model
    return prepared.features(X), (one if model.shared_kernel else jax.vmap(one))(model.kernel)


@compiled_once
@double_precision
def joint(
    posterior: Posterior, X: Float[np.ndarray, "N D"]
) -> tuple[Float[np.ndarray, "N C"], Float[np.ndarray, "C N N"]]:
    """Mean and covariance k(X, X′) − AᵀA + AᵀSA of each latent function at all rows together."""
    features, K = jax.tree.map(np.asarray, _covariance_parts(posterior.prepared, X))
    model, size = posterior.prepared.model, posterior.q.excess.shape[-1]
    means, covariances = [], []
    for c in range(posterior.n_latent):
        A, diagonal = (part if model.shared else part[c] for part in features[:2])
        own = (K if model.shared_kernel else K[c]).copy()
        np.fill_diagonal(own, diagonal)  # a distance of 0 is known without rounding
        changed = A[:, :size]
        excess = posterior.q.excess[c % len(posterior.q.excess)]  # its own, or that of all
        covariance = own + changed @ excess @ changed.T
        means.append(A @ posterior.q.mean[c])
        covariances.append(0.5 * (covariance + covariance.T))
    return np.stack(means, axis=1), np.stack(covariances)


def draws(
    posterior: Posterior, X: Float[np.ndarray, "N D"], count: int, rng: np.random.Generator
) -> Float[np.ndarray, "S N C"]:
    """Samples of the latent functions at all rows together, with the covariances of `joint`."""
    mean, covariances = joint(posterior, X)
    samples = np.empty((count, *mean.shape))
    for c, covariance in enumerate(covariances):
        root, _ = cholesky(covariance, SAMPLE_JITTER)
        samples[:, :, c] = mean[:, c] + rng.standard_normal((count, len(mean))) @ root.T
    return samples


@partial(program, options=None)
def _row_bounds(
    prepared: Prepared,
    q: Moments,
    X: Float[Array, "B D"],
    y: Int[Array, "B"],
    std: Float[Array, "B D"] | None,
) -> Float[Array, "B"]:
    inputs = prepared.model.inputs
    if inputs.estimated:
        return row_values(prepared, q, X, y, std)
    nodes = inputs.nodes(X, std, y)
    features = prepared.features(nodes.X)
    mu, nu = prepared.marginals(features, q)
    if len(nodes.X) == len(X):  # else the errors are in the nodes
        nu = nu + prepared.extra(features, q, X, std)
    labels = jnp.repeat(y, len(nodes.X) // len(X))
    return inputs.joined(prepared.bounds(labels, mu, nu), nodes.log_weight)


@compiled_once
@double_precision
def row_bounds(
    posterior: Posterior,
    X: Float[np.ndarray, "N D"],
    y: Int[np.ndarray, "N"],
    std: Float[np.ndarray, "N D"] | None = None,
) -> Float[np.ndarray, "N"]:
    """ℓ of every row under q: their sum, less KL(q ‖ p), is the ELBO of these rows."""
    size = min(BOUND_ROWS, 2 ** (len(X) - 1).bit_length())  # few lengths, few programs
    found = []
    for first in range(0, len(X), size):
        rows = np.minimum(np.arange(first, first + size), len(X) - 1)  # the last one fills up
        own = None if std is None else std[rows]
        bounds = _row_bounds(posterior.prepared, posterior.q, X[rows], y[rows], own)
        found.append(np.asarray(bounds)[: len(X) - first])
    return np.concatenate(found)
