"""Rules: from marginals to sites, and the objective that these serve.

Variational inference and power-EP are two rules of the same steps, rounds and stops. A rule says
what one pass over all rows under q finds (`look`), whether a step is to be taken and how long the
next one is (`judge`), and what the objective of held sites is, with its gradients (`objective`).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gpclf.data import Chunk, Kept, Rows
from gpclf.gaussian import Moments, Natural, moments
from gpclf.inference.passes import (
    Pass,
    definite,
    gradient_pass,
    held_sum,
    with_prior,
)
from gpclf.likelihoods import Sites
from gpclf.linalg import plain_cholesky
from gpclf.model import Prepared


class Held(NamedTuple):
    """What makes up q beside the prior: the sites of every row, and a rest that no row has."""

    sites: Kept[Sites]
    rest: Natural


class Seen(NamedTuple):
    """All rows under one q."""

    objective: float  # NaN where q is no Gaussian or a site no number; nothing else is then known
    m: Moments  # of q
    target: Natural | None = None  # the fresh sites of all rows, times the prior
    sites: Kept[Sites] | None = None  # fresh, row by row, where they were asked for
    sums: Pass | None = None
    by_features: Kept | None = None  # M numbers a row, so never of all rows
    gap: float = np.inf  # to the target, squared, in the metric of q
    improper: int = 0  # rows that keep their site


class Verdict(NamedTuple):
    """Whether a step is taken, and the rate to try next."""

    taken: bool
    rate: float


def slope(q: Natural, m: Moments, target: Natural) -> float:
    """How the ELBO rises at q on the straight line to `target`, per unit of the rate.

    ∂/∂m = g = δh − δΛ m and ∂/∂S = −½δΛ for the sites of q itself, and on the line dm = S g and
    dS = −S δΛ S: together gᵀSg + ½ tr(δΛ S δΛ S), never negative.
    """
    total, each = 0.0, len(q.linear) // len(q.precision)  # functions that have a Λ in common
    for c, excess in enumerate(m.excess):
        own = slice(c * each, (c + 1) * each)
        change = target.precision[c] - q.precision[c]
        g = target.linear[own] - q.linear[own] - m.mean[own] @ change
        product = change @ excess + change  # δΛ S
        total += np.sum(g * (g @ excess + g)) + 0.5 * each * np.sum(product * product.T)
    return float(total)


def peak(slope: float, gain: float, rate: float) -> float:
    """Where a parabola is highest that begins with `slope` and has risen by `gain` at `rate`."""
    bend = (gain - slope * rate) / rate**2
    return slope / (-2 * bend) if bend < 0 else np.inf


def searched(rise: float, gain: float, rate: float, slack: float) -> Verdict:
    """The line search of everything that climbs: taken unless it falls by more than `slack`.

    The next rate is where the parabola peaks that slope and gain make: within a half and twice
    this one after a step, within an eighth and a half of it after none.
    """
    best = peak(rise, gain, rate) if np.isfinite(gain) else 0.0
    if gain >= -slack:  # not where it is no number
        return Verdict(True, min(1.0, float(np.clip(best, rate / 2, 2 * rate))))
    return Verdict(False, float(np.clip(best, rate / 8, rate / 2)))


class Rule(ABC):
    """From (y, μ, ν, old site) to a fresh site and the row's term of an objective."""

    needs_sites = False  # of every row, to step at all

    @abstractmethod
    def look(
        self,
        prepared: Prepared,
        q: Natural,
        rows: Rows,
        held: Kept[Sites] | None = None,
        *,
        keep_features: bool = False,
    ) -> Seen:
        """One pass: the objective at q, and the fresh sites; these row by row where `held` are."""

    @abstractmethod
    def objective(self, prepared: Prepared, q: Natural, rows: Rows, held: Kept[Sites]) -> Seen:
        """The objective of held sites with its gradients, for hyper-parameters."""

    @abstractmethod
    def judge(self, rise: float, here: Seen, there: Seen, rate: float, slack: float) -> Verdict:
        """Of a step from `here` to `there`, along which the ELBO would rise by `rise`."""

    @abstractmethod
    def converged(self, before: Seen, here: Seen, rate: float, tolerance: float) -> bool:
        """Whether another step would gain little, after one of this rate."""

    def arrived(self, here: Seen, tolerance: float) -> bool:
        """Whether no step at all is needed."""
        return False

    def proper(
        self, prepared: Prepared, q: Natural, here: Seen, rows: Rows
    ) -> tuple[Natural, Kept[Sites] | None]:
        """Where a full step from `here` goes, and the sites that it goes to."""
        assert here.target is not None
        return here.target, here.sites

    def held_still(
        self, prepared: Prepared, q: Natural, sites: Kept[Sites], rows: Rows
    ) -> Kept[Sites]:
        """The sites, fit to be held while the kernel changes."""
        return sites

    @property
    def key(self) -> object:
        """What tells its programs from those of another rule."""
        return type(self).__name__

    def programs(
        self, prepared: Prepared, chunk: Chunk, prior: Natural
    ) -> Sequence[Callable[[], object]]:
        """Calls on zeros that compile what steps need, the longest first."""
        m, _ = moments(prior)
        return [lambda: gradient_pass(prepared, m, chunk)]


class Variational(Rule):
    """The ELBO: a site is the gradient of the row's bound."""

    def look(
        self,
        prepared: Prepared,
        q: Natural,
        rows: Rows,
        held: Kept[Sites] | None = None,
        *,
        keep_features: bool = False,
    ) -> Seen:
        """Sites and gradients come from one pass; what sites are held does not matter."""
        m, kl = moments(q)
        if not np.isfinite(kl):
            return Seen(np.nan, m)

        wanted = held is not None  # not `held` itself, where `found` goes to where the rows are

        def found(chunk: Chunk) -> tuple[Pass, tuple]:
            one = gradient_pass(prepared, m, chunk)
            sites = Sites(*map(np.asarray, one.sites)) if wanted else None
            return one.sums(), (sites, one.by_features if keep_features else None)

        sums, kept = rows.sum_and_keep(found)
        if sums.not_finite:
            return Seen(np.nan, m)
        return Seen(
            float(sums.bound) - kl,
            m,
            sums.statistics(m).target(),
            Kept(sites for sites, _ in kept) if wanted else None,
            sums,
            Kept(by_features for _, by_features in kept) if keep_features else None,
        )

    def objective(self, prepared: Prepared, q: Natural, rows: Rows, held: Kept[Sites]) -> Seen:
        """The bound of a row does not know its site."""
        return self.look(prepared, q, rows, held, keep_features=True)

    def judge(self, rise: float, here: Seen, there: Seen, rate: float, slack: float) -> Verdict:
        """The ELBO must not fall."""
        return searched(rise, there.objective - here.objective, rate, slack)

    def converged(self, before: Seen, here: Seen, rate: float, tolerance: float) -> bool:
        """By the gain, for a full step."""
        return here.objective - before.objective < tolerance * rate

    def proper(
        self, prepared: Prepared, q: Natural, here: Seen, rows: Rows
    ) -> tuple[Natural, Kept[Sites] | None]:
        """Sites of negative precision may add up to no Gaussian: then to their definite likeness.

        At the optimum the sites add up to q itself.
        """
        assert here.target is not None
        if all(plain_cholesky(precision) is not None for precision in here.target.precision):
            return here.target, here.sites
        return self.definite_target(prepared, q, here, rows)

    def definite_target(
        self, prepared: Prepared, q: Natural, here: Seen, rows: Rows
    ) -> tuple[Natural, Kept[Sites]]:
        """Where a full step goes to sites without negative precisions, and these."""
        assert here.target is not None
        assert here.sums is not None
        sites = here.sites
        if sites is None:
            sites = self.look(prepared, q, rows, Kept()).sites
            assert sites is not None
        made = self.held_still(prepared, q, sites, rows)
        if made is sites:
            return here.target, sites
        target = posterior_from_sites(prepared, made, rows)
        if here.sums.beyond is not None:
            target = target._replace(linear=target.linear + here.sums.beyond)
        return target, made

    def held_still(
        self, prepared: Prepared, q: Natural, sites: Kept[Sites], rows: Rows
    ) -> Kept[Sites]:
        """Without negative precisions, and with their slopes under q."""
        return without_negative(prepared, moments(q)[0], sites, rows)


def without_negative(prepared: Prepared, m: Moments, sites: Kept[Sites], rows: Rows) -> Kept[Sites]:
    """The sites with negative precisions set to 0, each with the slope under m that it had."""
    if not any(np.any(part.precision < 0) for part in sites):
        return sites

    def made(chunk: Chunk, own: Sites) -> Sites:
        return Sites(*map(np.asarray, definite(prepared, m, own, chunk)))

    return rows.keep(made, sites)


def posterior_from_sites(prepared: Prepared, sites: Kept[Sites], rows: Rows) -> Natural:
    """The q that held sites give."""
    return with_prior(rows.sum(lambda chunk, own: held_sum(prepared, own, chunk), sites))


def held_posterior(prepared: Prepared, held: Held, rows: Rows) -> Natural:
    """The q that sites and rest make up under this kernel."""
    return Natural(*map(np.add, posterior_from_sites(prepared, held.sites, rows), held.rest))


def nothing_said(prepared: Prepared, chunk: Chunk, q: Natural) -> Sites:
    """Sites that say nothing, for every node of a chunk."""
    nodes, dtype = prepared.nodes(len(chunk.weight)), chunk.X.dtype
    return Sites(*(np.zeros((nodes, len(part)), dtype) for part in (q.precision, q.linear)))


def no_sites(prepared: Prepared, rows: Rows, q: Natural) -> Kept[Sites]:
    """Sites that say nothing, for every row; of the form of q."""
    return rows.keep(lambda chunk: nothing_said(prepared, chunk, q))


def mixed(old: Held, sites: Kept[Sites], beyond: Any, rate: float) -> Held:
    """The point at `rate` on the straight line from what is held to fresh sites."""

    def between(old: Sites, new: Sites) -> Sites:
        return Sites(*((1 - rate) * o + rate * n for o, n in zip(old, new, strict=True)))

    rest = Natural(*((1 - rate) * part for part in old.rest))
    if beyond is not None:
        rest = rest._replace(linear=rest.linear + rate * beyond)
    pairs = zip(old.sites, sites, strict=True)
    return Held(Kept(between(*pair) for pair in pairs), rest)
