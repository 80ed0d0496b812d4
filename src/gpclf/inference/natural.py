"""Steps on (h, Λ): full-batch with a search along them, or stochastic; and where they begin."""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import numpy as np

from gpclf.data import Rows
from gpclf.gaussian import Natural
from gpclf.inference.journal import Journal
from gpclf.inference.passes import with_kept_features
from gpclf.inference.rules import Held, Rule, Seen, Variational, mixed, no_sites, slope
from gpclf.inference.stops import Stop
from gpclf.likelihoods import Sites
from gpclf.model import Prepared, Theta, prepare

SMALLEST_RATE = 2.0**-12
CAUTION = 0.5  # of the rate, where sites have negative precisions
EASY_STEPS = 8  # under an easier likelihood, to begin with
FIRST_ROWS = 8192  # that a first posterior for steps on batches sees


def stochastic_step(q: Natural, target: Natural, rate: float, negative: bool) -> Natural:
    """A step of size `rate` towards the sites of a batch, well inside the Gaussians.

    The straight line, unless a site has a `negative` precision. Then Λ + ρG + ½ρ²GΛ⁻¹G with
    G = target − Λ (Lin, Schmidt & Khan 2020), which is at least ½Λ whatever the batch says. To
    test whether the straight line is still positive definite would not do: a Λ that is only just
    so makes variances, and with them the next sites, as wrong as one that is not. The correction
    adds ½ρ²GΛ⁻¹G on average, too, so that q is a little too sure: less so at half the rate.
    """
    if not negative:
        return q.towards(target, rate)
    rate *= CAUTION
    step = q.towards(target, rate)
    for c, precision in enumerate(step.precision):
        G = target.precision[c] - q.precision[c]
        bent = precision + 0.5 * rate**2 * G @ np.linalg.solve(q.precision[c], G)
        step.precision[c] = 0.5 * (bent + bent.T)
    return step


def any_negative(*sites: Sites) -> bool:
    """Whether a site has a negative precision."""
    return any(bool(np.any(np.asarray(own.precision) < 0)) for own in sites)


def tempered(q: Natural, share: float) -> Natural:
    """q with a share of what it learnt: where the rows behind it had stood for many more.

    Their weights make q as sure as all rows would; on these it is too sure of the wrong thing, and
    steps from there are long to forget it.
    """
    return q.prior().towards(q, share)


def less_prior(q: Natural) -> Natural:
    """What q says beyond the prior."""
    return Natural(q.linear, q.precision - np.eye(q.linear.shape[1]))


class Start(NamedTuple):
    """Where steps begin: q, what makes it up if that is to be known, a rate, the rows under q.

    Those that go on from others count on.
    """

    q: Natural
    held: Held | None = None
    rate: float = 1.0
    here: Seen | None = None
    done: int = 0


class Limits(NamedTuple):
    """How many steps, the gain in nats that is little, and the loss that is rounding."""

    steps: int
    tolerance: float
    slack: float = 0.0


class Settled(NamedTuple):
    """The end of some steps."""

    q: Natural
    held: Held | None
    here: Seen
    rate: float
    reason: Stop

    @property
    def objective(self) -> float:
        """That of all rows under q."""
        return self.here.objective


def settle(
    rule: Rule,
    prepared: Prepared,
    start: Start,
    rows: Rows,
    limits: Limits,
    *,
    keep_features: bool = False,
    on_step: Callable[[float, Natural], bool] = lambda objective, q: False,
    before_step: Callable[[Start], None] = lambda start: None,
) -> Settled:
    """Full-batch steps along the line to the sites, each as long as the rule allows.

    Where what makes up q is held, a mixture of it and fresh sites goes along with every step, so
    that it still does. With `keep_features` the last pass has the gradients by features, too. They
    end where `on_step` says that the time is up. `before_step` is told from where another fit could
    go on.
    """
    q, held, rate, here, first = start
    options = {"keep_features": keep_features}

    def look(q: Natural, held: Held | None) -> Seen:
        return rule.look(prepared, q, rows, None if held is None else held.sites, **options)

    here = look(q, held) if here is None else here
    for done in range(first, limits.steps):
        if here.target is None:
            return Settled(q, held, here, rate, Stop.NOT_A_NUMBER)
        if rule.arrived(here, limits.tolerance):
            return Settled(q, held, here, rate, Stop.CONVERGED)
        target, fresh = rule.proper(prepared, q, here, rows)
        here = here._replace(by_features=None)  # large: of the last pass only
        before_step(Start(q, held, rate, here, done))
        rise, beyond = slope(q, here.m, target), None if here.sums is None else here.sums.beyond
        while True:
            ahead, moved = q.towards(target, rate), held
            if held is not None and fresh is not None:
                moved = mixed(held, fresh, beyond, rate)
            there = look(ahead, moved)
            verdict = rule.judge(rise, here, there, rate, limits.slack)
            if verdict.taken:
                break
            rate = verdict.rate
            if rate < SMALLEST_RATE:
                return Settled(q, held, here, 1.0, Stop.NO_STEP)
        before, used = here, rate
        q, held, here, rate = ahead, moved, there, verdict.rate
        late = on_step(here.objective, q)
        if rule.converged(before, here, used, limits.tolerance):
            return Settled(q, held, here, rate, Stop.CONVERGED)
        if late:
            return Settled(q, held, here, rate, Stop.TIME)
    return Settled(q, held, here, rate, Stop.STEPS)


def initial_posterior(
    prepared: Prepared, q: Natural, rows: Rows, journal: Journal | None = None
) -> tuple[Natural, Held]:
    """A first q for these rows, and what makes it up: the best by the ELBO of a few.

    q may stem from an earlier fit. A likelihood with several optima should not lose the one it has
    found: a full step from q competes with the prior. At the very beginning it is taken from what
    an easier likelihood makes of the rows, and competes with that, too.
    """
    journal = Journal() if journal is None else journal
    return journal.once("first posterior", lambda: _initial(prepared, q, rows, journal))


def _initial(prepared: Prepared, q: Natural, rows: Rows, journal: Journal) -> tuple[Natural, Held]:
    rule, n_latent = Variational(), len(q.linear)
    prior = q.prior()
    nothing = Held(no_sites(prepared, rows, prior), less_prior(prior))
    easy: Held | None = None
    if np.array_equal(q.linear, prior.linear):
        likelihood = prepared.model.likelihood
        easier = likelihood.easier(n_latent)
        if easier is likelihood:
            return prior, nothing
        easily = eqx.tree_at(lambda p: p.model.likelihood, prepared, easier)
        place, limits = journal.place("easier"), Limits(EASY_STEPS, 0.0)
        start = place.reached(Start(prior, nothing))
        found = settle(rule, easily, start, rows, limits, before_step=place.mark)
        q, easy = found.q, found.held
    here = journal.once("look", lambda: rule.look(prepared, q, rows, nothing.sites))
    of_prior = journal.once("look", lambda: rule.look(prepared, prior, rows).objective)
    best, highest = (prior, nothing), of_prior
    if easy is not None and here.objective > highest:  # a NaN is never higher
        best, highest = (q, easy), here.objective
    if here.target is not None:
        target, sites = rule.definite_target(prepared, q, here, rows)
        if rule.look(prepared, target, rows).objective > highest:
            assert here.sums is not None
            best = target, mixed(nothing, sites, here.sums.beyond, 1.0)
    return best


def first_for_batches(
    theta: Theta, q: Natural, rows: Rows, jitter: float, rng: np.random.Generator
) -> tuple[Natural, int]:
    """A first q for steps on batches, where it is the prior, and how many rows it knows."""
    if np.any(q.linear) or theta.model.likelihood.easier(len(q.linear)) is theta.model.likelihood:
        return q, 0
    prepared, _ = prepare(*theta, jitter)
    some = rows.sample(FIRST_ROWS, rng)
    q, _ = initial_posterior(prepared, q, with_kept_features(prepared, some))
    return q, some.n_rows if np.any(q.linear) else 0
