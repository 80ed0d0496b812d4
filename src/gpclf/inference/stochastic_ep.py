"""Stochastic EP: one site for all rows, so that memory does not grow with them.

All N rows have the same site, the N-th part of what q knows beyond the prior. So all rows of a
batch have the same cavity, q without the share α/N of that (Li, Hernández-Lobato & Turner 2015),
and it is always proper. Sites from its tilted moments give the target of the usual stochastic step.
With Φ = ½hᵀm − ½ log|Λ| the energy is Φ(q) + 1/α { Σ w log Z + N (Φ(cavity) − Φ(q)) }.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from gpclf.compilation import program
from gpclf.data import Chunk
from gpclf.gaussian import Moments, Natural, moments
from gpclf.inference.hyper import Theta, adam_start, adam_step
from gpclf.inference.journal import ENOUGH, FitError
from gpclf.inference.natural import begin_with_some, stochastic_step, weakened
from gpclf.inference.power_sites import Fraction, fresh_site, projections, whole_cavity
from gpclf.inference.sites import (
    Survey,
    double,
    features_of,
    finite_rows,
    held,
    weights_of,
    with_features,
    with_prior,
)
from gpclf.inference.stochastic import ADAM_RATE, LEAST_RATE, falling, natural_rate
from gpclf.inference.work import Work
from gpclf.likelihoods import Likelihood, Sites
from gpclf.model import Prepared, prepare
from gpclf.precision import cast


@program
def tied_survey(
    prepared: Prepared, cavity: Moments, chunk: Chunk, fraction: Fraction
) -> tuple[Survey, Int[Array, ""]]:
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
    seen = Survey(
        jnp.sum(weight * values, dtype=jnp.float64),
        jnp.sum(~finite_rows(values, *sites)),
        *double((by_cavity, own, None)),
        by_features,
        sites,
    )
    return seen, jnp.sum((chunk.weight > 0) & ~found)


def log_normaliser(q: Natural, m: Moments) -> float:
    """Φ = ½hᵀm − ½ log|Λ|, summed over functions."""
    log_det = sum(np.linalg.slogdet(precision)[1] for precision in q.precision)
    return float(0.5 * np.sum(q.linear * np.asarray(m.mean)) - 0.5 * log_det)


def run_stochastic_ep(
    theta: Theta,
    q: Natural,
    work: Work,
    behind: int,
) -> tuple[Theta, Natural, float, str]:
    """Steps on batches, with Adam on θ beside them where the plan says so.

    Also an estimate of the energy, and why it stopped. At first q stands for `behind` rows.
    """
    stream, plan, rng, log = work
    fraction, total = Fraction(plan.alpha), float(stream.weight.sum())
    prepared, _ = prepare(*theta, plan.jitter)
    if not behind:
        q, behind = begin_with_some(theta, q, stream, plan, rng)
    n_batches = -(-stream.n_rows // plan.batch_rows)
    state, step, energies, why, without = adam_start(theta), 0, [], "epoch limit", 0
    for epoch in range(plan.max_epochs):
        estimates, without = [], 0
        for batch in stream.batches(plan.batch_rows, rng):
            rate = plan.rate or natural_rate(float(step), behind / plan.batch_rows)
            if plan.optimizer == "adam" and plan.rate is None:
                rate = max(rate, LEAST_RATE)
            share = step / (n_batches * plan.max_epochs)
            rate = falling(rate, share)
            step += 1
            cavity = weakened(q, 1 - min(1.0, plan.alpha / total))
            m = moments(cavity)[0]
            chunk = with_features(prepared, batch)
            seen, none = tied_survey(prepared, m, chunk, fraction)
            outside = log_normaliser(cavity, m)
            inside = log_normaliser(q, moments(q)[0])
            tied = inside + total / plan.alpha * (outside - inside)
            estimates.append(float(seen.bound) + tied)
            without += int(none)
            target = with_prior(jax.tree.map(np.asarray, held(prepared, seen.sites, chunk)))
            q = stochastic_step(q, target, rate, seen.sites)
            if plan.optimizer == "adam":
                theta, state = adam_step(
                    theta, state, prepared, seen, chunk, falling(ADAM_RATE, share), plan.move_points
                )
                prepared, _ = prepare(*theta, plan.jitter)
        energy = float(np.mean(estimates))
        if not np.isfinite(energy):
            raise FitError(f"epoch {epoch + 1}: the energy is not a number.")
        energies.append(energy)
        log.note("epochs", energy / total, (epoch + 1) / plan.max_epochs, theta, q)
        log.score(theta, q)
        if log.enough:
            why = ENOUGH
            break
    why += f", {without} rows without a site in the last epoch" if without else ""
    return *log.best(theta, q), energies[-1], why
