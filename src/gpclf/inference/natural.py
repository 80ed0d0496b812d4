"""The natural engine: closed-form steps on (h, Λ), full-batch or stochastic."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

import equinox as eqx
import numpy as np

from gpclf.data import ArrayStream, Chunk, reduce
from gpclf.gaussian import Moments, Natural, moments
from gpclf.inference.plan import LEARNING_ROWS, Plan
from gpclf.inference.sites import Survey, definite, survey, with_prior
from gpclf.inference.sites import held as held_sum
from gpclf.inputs import Features
from gpclf.likelihoods import Sites
from gpclf.linalg import plain_cholesky
from gpclf.model import Prepared, Theta, prepare

SMALLEST_RATE = 2.0**-12
EASY_STEPS = 8  # under an easier likelihood, to begin with


def stochastic_step(q: Natural, target: Natural, rate: float, sites: Sites) -> Natural:
    """A step of size `rate` towards the sites of a batch, well inside the Gaussians.

    The straight line, where no site has a negative precision. Else Λ + ρG + ½ρ²GΛ⁻¹G with
    G = target − Λ (Lin, Schmidt & Khan 2020), which is at least ½Λ whatever the batch says. To
    test whether the straight line is still positive definite would not do: a Λ that is only just
    so makes variances, and with them the next sites, as wrong as one that is not.
    """
    step = q.towards(target, rate)
    if not np.any(np.asarray(sites.precision) < 0):
        return step
    for c, precision in enumerate(step.precision):
        G = target.precision[c] - q.precision[c]
        bent = precision + 0.5 * rate**2 * G @ np.linalg.solve(q.precision[c], G)
        step.precision[c] = 0.5 * (bent + bent.T)
    return step


def weakened(q: Natural, share: float) -> Natural:
    """q with a share of what it learnt: where the rows behind it had stood for many more.

    Their weights make q as sure as all rows would; on these it is too sure of the wrong thing, and
    steps from there are long to forget it.
    """
    return Natural.standard(*q.linear.shape).towards(q, share)


def less_prior(q: Natural) -> Natural:
    """What q says beyond the prior."""
    return Natural(q.linear, q.precision - np.eye(q.linear.shape[1]))


See = Callable[[Prepared, Moments, Chunk], Survey]


class Visited(NamedTuple):
    """All rows seen under one q."""

    elbo: float  # NaN where q is no Gaussian or a site no number; nothing else is then known
    m: Moments  # of q
    sums: Survey | None = None
    sites: list[Sites] | None = None  # chunk by chunk, where they were asked for
    by_features: list[Features] | None = None  # likewise: M numbers a row, so never of all rows

    def target(self) -> Natural | None:
        """Where a full step to the sites goes."""
        return None if self.sums is None else self.sums.statistics(self.m).target()


def visit_all(
    prepared: Prepared,
    q: Natural,
    chunks: Iterable[Chunk],
    *,
    keep_sites: bool,
    keep_features: bool = False,
    see: See = survey,
) -> Visited:
    """The ELBO at q, its gradients, and the sites of every row."""
    m, kl = moments(q)
    if not np.isfinite(kl):
        return Visited(np.nan, m)
    sites: list[Sites] = []
    by_features: list[Features] = []

    def look(chunk: Chunk) -> Survey:
        seen = see(prepared, m, chunk)
        if keep_sites:
            sites.append(Sites(*map(np.asarray, seen.sites)))
        if keep_features:
            by_features.append(seen.by_features)
        return seen.sums()

    sums = reduce(look, chunks)
    if sums.not_finite:
        return Visited(np.nan, m)
    kept = sites if keep_sites else None, by_features if keep_features else None
    return Visited(float(sums.bound) - kl, m, sums, *kept)


class Climbed(NamedTuple):
    """The result of full-batch steps: q, and the sites of every row whose sum q is."""

    q: Natural
    held: list[Sites] | None
    elbo: float
    rate: float
    reason: str
    left: float  # share of the first q that is still in this one, next to new sites
    here: Visited  # under this q


def mixed(old: Sites, new: Sites, rate: float) -> Sites:
    """The point at `rate` on the straight line from old sites to new ones."""
    return Sites(*((1 - rate) * o + rate * n for o, n in zip(old, new, strict=True)))


def _positive(q: Natural) -> bool:
    return all(plain_cholesky(precision) is not None for precision in q.precision)


def made_definite(
    prepared: Prepared, q: Natural, sites: list[Sites], chunks: Iterable[Chunk]
) -> list[Sites]:
    """The sites of every row without negative precisions, and with their slopes under q."""
    if not any(np.any(part.precision < 0) for part in sites):
        return sites
    m, _ = moments(q)
    pairs = zip(sites, chunks, strict=True)
    made = (definite(prepared, m, part, chunk) for part, chunk in pairs)
    return [Sites(*map(np.asarray, part)) for part in made]


def _definite_target(
    prepared: Prepared, q: Natural, here: Visited, chunks: Callable[[], Iterable[Chunk]]
) -> tuple[Natural, list[Sites]]:
    """Where a full step to the sites seen `here` goes, once they are definite."""
    if here.sites is None:
        here = visit_all(prepared, q, chunks(), keep_sites=True)
    whole = here.target()
    assert here.sites is not None
    assert whole is not None
    sites = made_definite(prepared, q, here.sites, chunks())
    if sites is here.sites:
        return whole, sites

    def together(sites: list[Sites]) -> Natural:
        pairs = zip(sites, chunks(), strict=True)
        return with_prior(reduce(lambda pair: held_sum(prepared, pair[0], pair[1]), pairs))

    target = together(sites)
    if prepared.model.inputs.bends:  # q has a part that no site of a row has
        rest = whole.linear - together(here.sites).linear
        target = target._replace(linear=target.linear + rest)
    return target, sites


def no_sites(prepared: Prepared, chunks: Iterable[Chunk], n_latent: int) -> list[Sites]:
    """Sites that say nothing, for every row."""
    places = prepared.model.inputs.places
    return [Sites(*np.zeros((2, places * len(c.weight), n_latent), c.X.dtype)) for c in chunks]


def begin(
    prepared: Prepared, q: Natural, chunks: Callable[[], Iterable[Chunk]]
) -> tuple[Natural, list[Sites]]:
    """A first q for these rows, and the sites that make it up: the best by the ELBO of a few.

    q may stem from an earlier fit. A likelihood with several optima should not lose the one it has
    found: a full step from q competes with the prior. At the very beginning it is taken from what
    an easier likelihood makes of the rows, and competes with that, too.
    """
    n_latent, size = q.linear.shape
    prior = Natural.standard(n_latent, size)
    none, easy = no_sites(prepared, chunks(), n_latent), None
    if np.array_equal(q.linear, prior.linear):
        likelihood = prepared.model.likelihood
        easier = likelihood.easier(n_latent)
        if easier is likelihood:
            return prior, none
        easily = eqx.tree_at(lambda p: p.model.likelihood, prepared, easier)
        found = climb(
            easily, prior, chunks, max_steps=EASY_STEPS, tolerance=0.0, slack=0.0, held=none
        )
        q, easy = found.q, found.held
    here = visit_all(prepared, q, chunks(), keep_sites=True)
    best, highest = (prior, none), visit_all(prepared, prior, chunks(), keep_sites=False).elbo
    if easy is not None and here.elbo > highest:  # a NaN is never higher
        best, highest = (q, easy), here.elbo
    if here.sums is not None:
        ahead = _definite_target(prepared, q, here, chunks)
        if visit_all(prepared, ahead[0], chunks(), keep_sites=False).elbo > highest:
            best = ahead
    return best


def begin_with_some(
    theta: Theta, q: Natural, stream: ArrayStream, plan: Plan, rng: np.random.Generator
) -> tuple[Natural, int]:
    """A first q for steps on batches, where it is the prior, and how many rows it knows."""
    if np.any(q.linear) or theta.model.likelihood.easier(len(q.linear)) is theta.model.likelihood:
        return q, 0
    prepared, _ = prepare(*theta, plan.jitter)
    some = stream.sample(LEARNING_ROWS, rng)
    chunks = list(some.whole(plan.chunk_rows))
    q, _ = begin(prepared, q, lambda: chunks)
    return q, some.n_rows if np.any(q.linear) else 0


def slope(q: Natural, m: Moments, target: Natural) -> float:
    """How the ELBO rises at q on the straight line to `target`, per unit of the rate.

    ∂/∂m = g = δh − δΛ m and ∂/∂S = −½δΛ for the sites of q itself, and on the line dm = S g and
    dS = −S δΛ S: together gᵀSg + ½ tr(δΛ S δΛ S), never negative.
    """
    total = 0.0
    for c in range(len(q.linear)):
        change = target.precision[c] - q.precision[c]
        g = target.linear[c] - q.linear[c] - change @ m.mean[c]
        product = change @ m.excess[c] + change  # δΛ S
        total += g @ (m.excess[c] @ g + g) + 0.5 * np.sum(product * product.T)
    return float(total)


def peak(slope: float, gain: float, rate: float) -> float:
    """Where a parabola is highest that begins with `slope` and has risen by `gain` at `rate`."""
    bend = (gain - slope * rate) / rate**2
    return slope / (-2 * bend) if bend < 0 else np.inf


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
    here: Visited | None = None,
    keep_features: bool = False,
    on_step: Callable[[float, Natural], None] = lambda elbo, q: None,
) -> Climbed:
    """Full-batch steps along the line to the sites; the ELBO does not fall by more than `slack`.

    A step that lowers the ELBO, or leaves the positive definite cone, is tried again at a lower
    rate: where the parabola peaks that slope and gain make, within a half and an eighth. That is
    the next rate, too. Far from the optimum, sites of negative precision may add up to no Gaussian
    at all: such a step heads for their `definite` likeness instead; at the optimum the sites add up
    to q itself. Stops when a step gains less than `tolerance` times its rate.

    Given the sites `held` that make up q, a mixture of old and new ones goes along with every step,
    so that they still do. From sites that say nothing, they make up q but for what is `left` of
    the first one. Rows that were seen under q, with sites if these are held, come as `here`.
    With `keep_features` the last visit has the gradients by features, too.
    """
    look = partial(visit_all, prepared, keep_sites=held is not None, keep_features=keep_features)
    left = 1.0
    if here is None:
        here = look(q, chunks())
    for _ in range(max_steps):
        target, fresh = here.target(), here.sites
        if target is None:
            return Climbed(q, held, here.elbo, rate, "not a number", left, here)
        if not _positive(target):
            target, fresh = _definite_target(prepared, q, here, chunks)
        here = here._replace(by_features=None)  # large: of the last visit only
        first = slope(q, here.m, target)
        while True:
            candidate = q.towards(target, rate)
            there = look(candidate, chunks())
            best = peak(first, there.elbo - here.elbo, rate)
            if np.isfinite(there.elbo) and not there.elbo < here.elbo - slack:
                break
            rate = float(np.clip(best, rate / 8, rate / 2))
            if rate < SMALLEST_RATE:
                why = "no step along the sites raises the ELBO"
                return Climbed(q, held, here.elbo, 1.0, why, left, here)
        if held is not None and fresh is not None:
            pairs = zip(held, fresh, strict=True)
            held = [mixed(old, new, rate) for old, new in pairs]
        gain, used, left = there.elbo - here.elbo, rate, (1 - rate) * left
        q, here = candidate, there
        on_step(here.elbo, q)
        rate = min(1.0, float(np.clip(best, rate / 2, 2 * rate)))
        if gain < tolerance * used:
            return Climbed(q, held, here.elbo, rate, "converged", left, here)
    return Climbed(q, held, here.elbo, rate, "step limit", left, here)
