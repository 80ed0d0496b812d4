"""The natural engine: closed-form steps on (h, Λ), full-batch or stochastic."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from gpclf.data import Chunk, reduce
from gpclf.gaussian import Natural, moments
from gpclf.inference.sites import Statistics, Survey, survey
from gpclf.likelihoods import Sites
from gpclf.linalg import plain_cholesky
from gpclf.model import Prepared

SMALLEST_RATE = 2.0**-12


def stochastic_step(q: Natural, target: Natural, rate: float) -> Natural:
    """A step of size `rate` towards the sites of a batch, positive definite whatever they are.

    The straight line stays inside for sites of non-negative precision. Where it leaves, the
    correction of Lin, Schmidt & Khan (2020) takes over: Λ + ρG + ½ρ²GΛ⁻¹G, G = target − Λ.
    """
    step = q.towards(target, rate)
    for c, precision in enumerate(step.precision):
        if plain_cholesky(precision) is None:
            G = target.precision[c] - q.precision[c]
            bent = precision + 0.5 * rate**2 * G @ np.linalg.solve(q.precision[c], G)
            step.precision[c] = 0.5 * (bent + bent.T)
    return step


class Visited(NamedTuple):
    """All rows seen under one q."""

    elbo: float  # NaN where q is no Gaussian or a site no number; nothing else is then known
    statistics: Statistics | None
    sites: list[Sites] | None  # chunk by chunk, where they were asked for


def visit_all(
    prepared: Prepared, q: Natural, chunks: Iterable[Chunk], *, keep_sites: bool
) -> Visited:
    """The ELBO at q, and the sites of every row."""
    m, kl = moments(q)
    if not np.isfinite(kl):
        return Visited(np.nan, None, None)
    kept: list[Sites] = []

    def sums(chunk: Chunk) -> Survey:
        seen = survey(prepared, m, chunk)
        if keep_sites:
            kept.append(Sites(*map(np.asarray, seen.sites)))
        return seen.sums()

    statistics = reduce(sums, chunks).statistics(m)
    if statistics.not_finite:
        return Visited(np.nan, None, None)
    return Visited(float(statistics.bound) - kl, statistics, kept if keep_sites else None)


class Climbed(NamedTuple):
    """The result of full-batch steps: q, and the sites of every row whose sum q is."""

    q: Natural
    held: list[Sites] | None
    elbo: float
    rate: float
    reason: str


def _mixed(old: Sites, new: Sites, rate: float) -> Sites:
    return Sites(*((1 - rate) * o + rate * n for o, n in zip(old, new, strict=True)))


def climb(
    prepared: Prepared,
    q: Natural,
    chunks: Callable[[], Iterable[Chunk]],
    *,
    max_steps: int,
    tolerance: float,
    slack: float,
    rate: float = 1.0,
    held: list[Sites] | None = None,
    on_step: Callable[[float, Natural], None] = lambda elbo, q: None,
) -> Climbed:
    """Full-batch steps along the line to the sites; the ELBO does not fall by more than `slack`.

    A step that lowers the ELBO, or leaves the positive definite cone, is tried again at half the
    rate. Stops when a step gains less than `tolerance` times its rate. Given the sites `held`
    that make up q, a mixture of old and new ones goes along with every step, so that they still do.
    """
    keep = held is not None
    here = visit_all(prepared, q, chunks(), keep_sites=keep)
    for _ in range(max_steps):
        if here.statistics is None:
            return Climbed(q, held, here.elbo, rate, "not a number")
        target = here.statistics.target()
        while True:
            candidate = q.towards(target, rate)
            there = visit_all(prepared, candidate, chunks(), keep_sites=keep)
            if np.isfinite(there.elbo) and not there.elbo < here.elbo - slack:
                break
            rate = rate / 2
            if rate < SMALLEST_RATE:
                return Climbed(q, held, here.elbo, 1.0, "no step along the sites raises the ELBO")
        if held is not None and here.sites is not None:
            pairs = zip(held, here.sites, strict=True)
            held = [_mixed(old, new, rate) for old, new in pairs]
        gain, used = there.elbo - here.elbo, rate
        q, here = candidate, there
        on_step(here.elbo, q)
        rate = min(1.0, 2 * rate)
        if gain < tolerance * used:
            return Climbed(q, held, here.elbo, rate, "converged")
    return Climbed(q, held, here.elbo, rate, "step limit")
