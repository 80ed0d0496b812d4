"""What one chunk gives to power-EP: each row's cavity, its fresh site and its share of the energy.

A site stands on the projection ω = aᵀv of its row, exp(λω − ½τω²), and f = ω + N(0, d) with
d = k(x, x) − aᵀa. Under q, ω ~ N(μ, s), s = aᵀSa. The cavity leaves α of the site out,

    s₋ = s/(1 − ατs),   μ₋ = (μ − αλs)/(1 − ατs),

log Z = log E p(y | f)^α under f ~ N(μ₋, s₋ + d), and with g, h its derivatives by μ₋ the site whose
α-th power makes the cavity's moments those of the tilted law has

    ατ = −h/(1 + h s₋),   αλ = (g − h μ₋)/(1 + h s₋)

(Minka 2004; Bui, Yan & Turner 2017). Each function here is one compiled pass over one chunk.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from gpclf.compilation import program
from gpclf.data import Chunk
from gpclf.gaussian import Moments, Natural
from gpclf.inference.passes import (
    Pass,
    double,
    features_of,
    finite_rows,
    summed_sites,
    weights_of,
    with_prior,
)
from gpclf.inputs import Features
from gpclf.likelihoods.base import Label, Likelihood, Scalar, Sites
from gpclf.likelihoods.base import Latent as Functions
from gpclf.likelihoods.power import Power
from gpclf.model import Marginals, Prepared, for_each
from gpclf.precision import cast


class Fraction(eqx.Module):
    """How much of a site a cavity leaves out: α, known when a program is compiled.

    A row of weight 2 is two rows with a site each. One of weight ½ is half a row: its likelihood is
    p^½, and α of that is left out; where there are such rows, the fraction is `uneven`.
    """

    alpha: float = eqx.field(static=True)
    uneven: bool = eqx.field(static=True, default=False)

    def of_rows(self, weight: Float[Array, "B"]) -> Float[Array, "B"] | None:
        """α of every row, or None where all have the same."""
        if not self.uneven:
            return None
        return self.alpha * jnp.where(weight > 0, jnp.minimum(weight, 1.0), 1.0)


class Cavity(NamedTuple):
    """N(μ₋, s₋) of ω in each function of one row, and whether it is one.

    Where 1 − ατs is not above half the digits of a number it is not, and q stands in its place.
    """

    mean: Functions
    variance: Functions
    left: Functions  # 1 − ατs
    proper: Bool[Array, ""]


def _cavity(mu: Functions, s: Functions, tau: Functions, lam: Functions, alpha: Power) -> Cavity:
    left = 1 - alpha * tau * s
    proper = jnp.all(left > jnp.sqrt(jnp.finfo(mu.dtype).eps))
    left = jnp.where(proper, left, 1.0)
    mean = jnp.where(proper, mu - alpha * lam * s, mu) / left
    return Cavity(mean, s / left, left, proper)


def whole_cavity(mu: Functions, s: Functions) -> Cavity:
    """N(μ, s) itself, where it has no site of the row in it."""
    return Cavity(mu, s, jnp.ones_like(s), jnp.asarray(True))


def _energy(
    log_z: Scalar,
    cavity: Cavity,
    mu: Functions,
    s: Functions,
    tau: Functions,
    lam: Functions,
    alpha: Power,
) -> Scalar:
    """1/α log E_q (p̃/t)^α + E_q log t of one row, t its site: E log p(y | f) as α → 0.

    log E_q t^−α = ½ Σ (ατμ² − 2αλμ + α²λ²s)/(1 − ατs) − ½ Σ log(1 − ατs), without a division by s.
    """
    ratio = (tau * mu**2 - 2 * lam * mu + alpha * lam**2 * s) / cavity.left
    without = 0.5 * jnp.sum(ratio - jnp.log(cavity.left) / alpha)
    return log_z / alpha + without + jnp.sum(lam * mu - 0.5 * tau * (mu**2 + s))


def projections(
    prepared: Prepared, features: Features, q: Moments
) -> tuple[Marginals, Marginals, Marginals]:
    """μ and s of every row's ω, and d, the variance of f that no inducing point explains."""

    def one(features: Features, q: Moments) -> tuple[Array, Array, Array]:
        A, diagonal = features.A, features.diagonal
        mu, nu = prepared.model.inputs.marginals(features, q)
        known = jnp.sum(A * A, axis=1)
        least = jnp.finfo(nu.dtype).eps * diagonal  # what the precision resolves
        return mu, jnp.maximum(nu - diagonal + known, least), jnp.maximum(diagonal - known, 0.0)

    shared = prepared.model.shared
    parts = for_each(
        lambda own: one(features if shared else own[0], own[1]),
        (None if shared else features, q),
    )
    mu, s, d = (part.T for part in parts)
    return mu, s, d


class Swept(NamedTuple):
    """One pass over a chunk: Σ w·energy, the sums of its fresh sites, and each of them."""

    bound: Float[Array | np.ndarray, ""]
    linear: Float[Array | np.ndarray, "C M"]
    precision: Float[Array | np.ndarray, "C M M"]
    not_finite: Int[Array | np.ndarray, ""]
    kept: Int[Array | np.ndarray, ""]  # rows that keep their site: no proper cavity, or none fresh
    sites: Sites | None

    def target(self) -> Natural:
        """The fresh sites times the prior."""
        return with_prior(Natural(self.linear, self.precision))


def fresh_site(
    likelihood: Likelihood, y: Label, cavity: Cavity, d: Functions, old: Sites, alpha: Power
) -> tuple[Scalar, Sites, Bool[Array, ""]]:
    """log Z, the new site, and whether there is one: else it is the old one."""
    log_z, g, h = likelihood.evidence_slopes(y, cavity.mean, cavity.variance + d, alpha)
    shrink = 1 + h * cavity.variance  # of the variance by the likelihood: positive when exact
    found = cavity.proper & jnp.all(shrink > jnp.sqrt(jnp.finfo(h.dtype).eps))
    scale = 1 / (alpha * jnp.where(found, shrink, 1.0))
    new = Sites(-h * scale, (g - h * cavity.mean) * scale)
    return log_z, Sites(*(jnp.where(found, n, o) for n, o in zip(new, old, strict=True))), found


@program
def cavity_pass(
    prepared: Prepared, q: Moments, chunk: Chunk, sites: Sites, fraction: Fraction
) -> Swept:
    """The energy of a chunk under q and its own sites, and the fresh sites of its cavities.

    A row without a proper cavity counts its variational bound, and keeps its site.
    """
    prepared, q, sites = cast((prepared, q, sites), chunk.X.dtype)
    features = features_of(prepared, chunk)
    mu, s, d = projections(prepared, features, q)
    alphas, likelihood = fraction.of_rows(chunk.weight), prepared.model.likelihood
    assert isinstance(likelihood, Likelihood)

    def one(y, mu, s, d, tau, lam, alpha):
        alpha = fraction.alpha if alpha is None else alpha
        cavity = _cavity(mu, s, tau, lam, alpha)
        log_z, site, found = fresh_site(likelihood, y, cavity, d, Sites(tau, lam), alpha)
        value = _energy(log_z, cavity, mu, s, tau, lam, alpha)
        return jnp.where(cavity.proper, value, likelihood.bound(y, mu, s + d)), site, found

    values, fresh, found = jax.vmap(one)(chunk.y, mu, s, d, *sites, alphas)
    return _swept(prepared, features, chunk, values, fresh, found)


def _swept(prepared, features, chunk, values, fresh, found) -> Swept:
    real = chunk.weight > 0
    finite = finite_rows(values, *fresh)
    weight = weights_of(prepared, chunk)
    linear, precision = summed_sites(features.A, fresh, weight)
    bound = jnp.sum(weight * values, dtype=jnp.float64)
    counts = (jnp.sum(~finite), jnp.sum(real & ~found))
    return Swept(bound, *double((linear, precision)), *counts, fresh)


@program
def energy_pass(
    prepared: Prepared, q: Moments, chunk: Chunk, sites: Sites, fraction: Fraction
) -> tuple[Pass, Int[Array, ""]]:
    """The energy of a chunk with its gradients while the sites are held; improper cavities."""
    prepared, q, sites = cast((prepared, q, sites), chunk.X.dtype)
    alphas = fraction.of_rows(chunk.weight)

    def one(likelihood, y, mu, s, d, tau, lam, alpha):
        alpha = fraction.alpha if alpha is None else alpha
        cavity = _cavity(mu, s, tau, lam, alpha)
        log_z = likelihood.log_evidence(y, cavity.mean, cavity.variance + d, alpha)
        value = _energy(log_z, cavity, mu, s, tau, lam, alpha)
        return jnp.where(cavity.proper, value, likelihood.bound(y, mu, s + d)), cavity.proper

    def energies(likelihood, features, q):
        mu, s, d = projections(prepared, features, q)
        in_axes = (None, 0, 0, 0, 0, 0, 0, 0)
        return jax.vmap(one, in_axes)(likelihood, chunk.y, mu, s, d, *sites, alphas)

    start = (prepared.model.likelihood, features_of(prepared, chunk), q)
    values, pull, proper = jax.vjp(energies, *start, has_aux=True)
    weight = weights_of(prepared, chunk)
    by_likelihood, by_features, by_q = pull(weight)
    no_inputs = jax.tree.map(jnp.zeros_like, prepared.model.inputs)
    found = Pass(
        jnp.sum(weight * values, dtype=jnp.float64),
        jnp.sum(~finite_rows(values)),
        *double((by_q, (by_likelihood, no_inputs), None, None)),
        by_features,
        sites,
    )
    return found, jnp.sum((chunk.weight > 0) & ~proper)


@program
def tied_pass(
    prepared: Prepared, cavity: Moments, chunk: Chunk, fraction: Fraction
) -> tuple[Pass, Int[Array, ""]]:
    """1/α Σ w log Z under one cavity, its gradients, the rows' sites, and how many have none."""
    prepared, cavity = cast((prepared, cavity), chunk.X.dtype)
    alpha, likelihood = fraction.alpha, prepared.model.likelihood
    assert isinstance(likelihood, Likelihood)

    def evidences(likelihood, features, cavity):
        mu, s, d = projections(prepared, features, cavity)
        values = jax.vmap(likelihood.log_evidence, (0, 0, 0, None))(chunk.y, mu, s + d, alpha)
        return values / alpha, (mu, s, d)

    start = (likelihood, features_of(prepared, chunk), cavity)
    values, pull, (mu, s, d) = jax.vjp(evidences, *start, has_aux=True)
    weight = weights_of(prepared, chunk)
    by_likelihood, by_features, by_cavity = pull(weight)

    def site(y, mu, s, d):
        none = Sites(jnp.zeros_like(mu), jnp.zeros_like(mu))
        whole = whole_cavity(mu, s)
        return fresh_site(likelihood, y, whole, d, none, alpha)[1:]

    sites, found = jax.vmap(site)(chunk.y, mu, s, d)
    own = (by_likelihood, jax.tree.map(jnp.zeros_like, prepared.model.inputs))
    sums = Pass(
        jnp.sum(weight * values, dtype=jnp.float64),
        jnp.sum(~finite_rows(values, *sites)),
        *double((by_cavity, own, None, None)),
        by_features,
        sites,
    )
    return sums, jnp.sum((chunk.weight > 0) & ~found)
