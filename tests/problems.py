"""Small problems for the engine, on every likelihood."""

import jax.numpy as jnp
import numpy as np
import pytest

import cases
from gpclf.data import ArrayRows
from gpclf.gaussian import Natural
from gpclf.inference.natural import Limits, Start, less_prior, settle
from gpclf.inference.rules import Held, Variational, no_sites
from gpclf.inputs import Exact
from gpclf.kernels import RBF
from gpclf.model import Model, Theta, one_per_function, prepare
from gpclf.precision import cast

ROWS, POINTS = 36, 9


# every likelihood with one kernel and one Z for all functions, and some with more than one; where
# laws of likelihoods run with many functions and two, two are enough for the engine
SMALLEST = {name.split()[0]: name for name in sorted(cases.LIKELIHOODS) if "closed" not in name}
SHARED = pytest.mark.parametrize(
    ("name", "share"),
    [(name, "both") for name in SMALLEST.values()]
    + [
        ("Logit", "none"),
        ("Softmax", "none"),
        ("RobustMax", "kernel"),
        ("LogisticSoftmax", "points"),
        ("Softmax", "covariance"),
        ("LogisticSoftmax", "covariance"),
    ],
)


def sharing(share):
    """What the word means for a model; with a covariance functions share all else, too."""
    return {
        part: share in ("both", "covariance", part.split("_")[1])
        for part in ("shared_kernel", "shared_points")
    }


def problem(name, *, share="both", rows=ROWS, dtype=np.float64, seed=0):
    """Rows of overlapping clusters, a model with Z not at the rows, and the rows."""
    likelihood, n_classes, *_ = cases.LIKELIHOODS[name]
    rng = np.random.default_rng(seed)
    y = np.arange(rows) % n_classes
    X = rng.normal(size=(rows, 3)) + 1.5 * rng.normal(size=(n_classes, 3))[y]
    Z = rng.normal(size=(POINTS, 3))
    kernel = RBF([1.0, 1.5, 2.0], 2.0)
    n_latent = likelihood.n_latent(n_classes)
    shared = sharing(share)
    if not shared["shared_kernel"]:
        kernel = one_per_function(kernel, n_latent)
    if not shared["shared_points"]:
        Z = Z + 0.1 * rng.normal(size=(n_latent, *Z.shape))  # each function its own
    model = cast(Model(kernel, likelihood, Exact(), **shared), jnp.float64)
    weight = rng.uniform(0.5, 2.0, rows)
    source = ArrayRows(X.astype(dtype), y.astype(np.int32), weight.astype(dtype))
    return Theta(model, jnp.asarray(Z)), source, n_latent


def no_sites_held(prepared, rows, n_latent, common=False):
    """What makes up the prior: no site says anything."""
    prior = Natural.standard(n_latent, prepared.Z.shape[-2], common=common)
    return Held(no_sites(prepared, rows, prior), less_prior(prior))


def settled(theta, rows, n_latent, steps=200, common=False):
    """The problem prepared, and where full-batch variational steps from the prior end."""
    prepared, _ = prepare(*theta, 1e-9)
    q = Natural.standard(n_latent, theta.Z.shape[-2], common=common)
    start = Start(q, no_sites_held(prepared, rows, n_latent, common))
    limits = Limits(steps, tolerance=1e-11, slack=1e-10)
    return prepared, settle(Variational(), prepared, start, rows, limits, keep_features=True)
