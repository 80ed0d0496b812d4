"""Small problems for the engine, on every likelihood."""

import jax.numpy as jnp
import numpy as np

import cases
from gpclf.data import ArrayStream
from gpclf.inference.hyper import Theta
from gpclf.inputs import Exact
from gpclf.kernels import RBF
from gpclf.model import Model, one_per_function
from gpclf.precision import cast

ROWS, POINTS = 60, 9


def problem(name, *, shared=True, rows=ROWS, dtype=np.float64, seed=0):
    """Rows of overlapping clusters, a model with Z not at the rows, and their stream."""
    likelihood, n_classes = cases.LIKELIHOODS[name]
    rng = np.random.default_rng(seed)
    y = np.arange(rows) % n_classes
    X = rng.normal(size=(rows, 3)) + 1.5 * rng.normal(size=(n_classes, 3))[y]
    Z = rng.normal(size=(POINTS, 3))
    kernel = RBF([1.0, 1.5, 2.0], 2.0)
    n_latent = likelihood.n_latent(n_classes)
    if not shared:
        kernel, Z = one_per_function((kernel, Z), n_latent)
        Z = Z + 0.1 * rng.normal(size=Z.shape)  # each function its own
    model = cast(Model(kernel, likelihood, Exact(), shared=shared), jnp.float64)
    weight = rng.uniform(0.5, 2.0, rows)
    stream = ArrayStream(X.astype(dtype), y.astype(np.int32), weight.astype(dtype))
    return Theta(model, jnp.asarray(Z)), stream, n_latent
