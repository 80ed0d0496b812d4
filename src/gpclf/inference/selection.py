"""How rough and how sure the kernel is, by the score of rows left out, when it has been learned.

A bound, and the evidence, choose functions that are too small and too smooth: their classes are
right and their probabilities timid. Three numbers, the kernel's family, a factor of all
lengthscales and one of the variance, are few for many rows, so that folds of the rows can choose
them with little to overfit. The search takes one step at a time along each in turn, wherever that
is better, until no step is. Of all that was tried, the kernel counts whose gain over the kernel as
it was learned is highest, less the standard error of that.

Folds are fitted at the inducing points that the fit began with. Those that it learned have seen the
rows left out: under them a surer kernel scores better than it is.
"""

from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from gpclf.data import Rows
from gpclf.data.rows import KEPT_FLOATS
from gpclf.gaussian import Natural
from gpclf.inference.context import FitContext
from gpclf.inference.left_out import Folds, RowScores, fold_scores
from gpclf.inference.natural import Limits
from gpclf.inference.rules import Rule
from gpclf.kernels import Kernel, Stationary
from gpclf.model import Points, Theta, prepare

SHORTER, SURER = 0.6, 4.0  # one step of the lengthscales, one of the variance
MOST_ROWS = 4096  # that folds are made of
MOST_CHOICES = 12  # from each kernel that was learned
FIRST_STEPS, STEPS = 15, 6  # on the q of a fold: from the prior, and from a choice beside
TOLERANCE = 10.0  # times that of the fit, for these
WORTH = 3e-4  # nats a row: for less the kernel stays as it was learned
BETTER = 0.2  # standard errors by which the next choice must beat the last


class Choice(NamedTuple):
    """Which family, and steps from the kernel as it was learned: shorter, surer."""

    family: int = 0
    shorter: int = 0
    surer: int = 0

    def moved(self, way: "Choice", n_families: int, lowest: int) -> "Choice | None":
        """One step along a way; None where it leads too far."""
        there = Choice(*(here + step for here, step in zip(self, way, strict=True)))
        possible = 0 <= there.family < n_families
        return there if possible and all(lowest <= step <= HIGHEST for step in there[1:]) else None


LOWEST, HIGHEST = -1, 3  # steps of either number
MANY_TIMES = 4  # as many rows as are asked: these would be more timid than all are, so none is
WAYS = [Choice(surer=1), Choice(family=1), Choice(shorter=1)]
WAYS += [Choice(surer=-1), Choice(family=-1), Choice(shorter=-1)]


class Tried(NamedTuple):
    """What one choice means, and how it scored."""

    kernel: str
    lengthscale: float
    variance: float
    score: float  # mean log-probability of a row left out
    gain: float  # over the kernel as learned
    error: float  # standard error of that


class Selection(NamedTuple):
    """θ as chosen, and everything that was tried: the kernel as learned first."""

    theta: Theta
    chosen: Tried
    tried: list[Tried]

    @property
    def remark(self) -> str:
        """What was chosen, in words."""
        if self.chosen is self.tried[0]:
            return "; kernel: as learned, by rows left out"
        kernel, length, variance, _, gain, _ = self.chosen
        return (
            f"; kernel: {kernel}, lengthscales times {length:.3g} and variance times "
            f"{variance:.3g}, by rows left out, {gain:.3f} nats a row"
        )


class _Scores:
    """Choices and their scores, each found once."""

    def __init__(
        self, rule: Rule, starts: tuple[Theta, ...], q: Natural, context: FitContext, Z: Points
    ):
        theta = starts[0]
        self.rule, self.theta, self.q, self.context = rule, theta, q, context
        self.starts, self.Z = starts, Z
        own = 1 if theta.model.shared else len(q.linear)
        most = min(MOST_ROWS, KEPT_FLOATS // (own * Z.shape[-2]))
        self.folds = Folds.of(_for_themselves(context.rows, most, context.rng), context.rng)
        few = MANY_TIMES * most < context.rows.n_rows
        self.lowest = 0 if few else LOWEST
        total = self.folds.rows.total_weight
        self.limits = Limits(STEPS, TOLERANCE * context.tolerance * total, context.slack(total))
        kind = type(theta.model.kernel)
        self.families = context.families if kind in context.families else (kind,)
        self.learned = Choice(self.families.index(kind))
        self.found: dict[Choice, RowScores] = {}
        self.ends: dict[Choice, list[Natural]] = {}

    def of(self, choice: Choice, near: Choice) -> RowScores:
        """Its score, with steps from where a neighbour ended."""
        if choice not in self.found:
            context = self.context
            theta = chosen_theta(self.starts, choice, self.families)._replace(Z=self.Z)
            prepared, _ = prepare(*theta, context.jitter)
            folds = self.folds.under(prepared)
            starts, limits = self.ends.get(near), self.limits
            if starts is None:  # not from the q of all rows: it knows those left out
                starts = [self.q.prior(theta.Z.shape[-2])] * folds.fitted
                limits = limits._replace(steps=FIRST_STEPS)
            arguments = (self.rule, prepared, folds, starts, limits, self.found.get(near))
            scores = context.journal.once("choice", partial(fold_scores, *arguments))
            self.found[choice], self.ends[choice] = scores
            context.log.remind(
                "rows left out", min(1.0, len(self.found) / (2 * MOST_CHOICES)), self.theta, self.q
            )
        return self.found[choice]

    def better(self, choice: Choice, than: Choice) -> bool:
        """Whether a choice beats another, and the best before it, by more than chance would."""
        gain, error = self.of(choice, than).gain(self.found[than])
        beaten = len(self.ends[choice]) < self.folds.fitted  # clearly, by that one or one before
        return not beaten and gain > BETTER * error

    def climb(self, start: Theta, most: int) -> None:
        """From a kernel that was learned, step by step, until none is better or so many are found.

        Each such kernel has a climb of its own: the roughest is the best only where it is surest.
        """
        best, before = Choice(self.families.index(type(start.model.kernel))), None
        self.of(best, best)
        while best != before:
            before = best
            for way in WAYS:
                there = best.moved(way, len(self.families), self.lowest)
                enough = len(self.found) >= most or self.context.log.late
                if there is None or (enough and there not in self.found):
                    continue
                if self.better(there, best):
                    best = there

    def surely_best(self) -> Choice:
        """The highest gain less its error, if that is worth a change."""
        whole = [c for c in self.found if len(self.ends[c]) == self.folds.fitted]
        gains = {choice: self.tried(choice) for choice in whole}
        sure = {choice: tried.gain - tried.error for choice, tried in gains.items()}
        best = max(whole, key=lambda choice: sure[choice])
        return best if sure[best] > WORTH else self.learned

    def tried(self, choice: Choice) -> Tried:
        """For the record."""
        theta = chosen_theta(self.starts, choice, self.families)
        scores = self.found[choice]
        return Tried(
            type(theta.model.kernel).__name__,
            SHORTER**choice.shorter,
            SURER**choice.surer,
            scores.mean,
            *scores.gain(self.found[self.learned]),
        )


def _for_themselves(rows: Rows, most: int, rng: np.random.Generator) -> Rows:
    """Some rows that do not stand for all: else q would be as sure as all rows make it.

    On the few that it sees it would then be sure of the wrong thing, and a timid kernel the best.
    """
    if most >= rows.n_rows:
        return rows.sample(most, rng)  # all of them, in memory
    some = rows.take(np.sort(rng.choice(rows.n_rows, most, replace=False)))
    return some.lighter(most / rows.n_rows)


def chosen_theta(
    starts: tuple[Theta, ...], choice: Choice, families: tuple[type[Kernel], ...]
) -> Theta:
    """θ with its kernel stretched: that of the family where it was learned, else the first's."""
    family = families[choice.family]
    theta = next((own for own in starts if type(own.model.kernel) is family), starts[0])
    kernel = theta.model.kernel
    if family is not type(kernel):
        assert isinstance(kernel, Stationary)
        assert issubclass(family, Stationary)
        kernel = kernel.of_family(family)
    kernel = kernel.stretched(SHORTER**choice.shorter, SURER**choice.surer)
    return theta._replace(model=replace(theta.model, kernel=kernel))


def select(
    rule: Rule, starts: tuple[Theta, ...], q: Natural, context: FitContext, Z: Points
) -> Selection | None:
    """The best kernel near those that were learned, by rows left out; q is of the first of them.

    Z: the inducing points that the fit began with. None where rows are too few for folds.
    """
    return context.journal.once("selection", partial(_select, rule, starts, q, context, Z))


def _select(
    rule: Rule, starts: tuple[Theta, ...], q: Natural, context: FitContext, Z: Points
) -> Selection | None:
    theta = starts[0]
    scores = _Scores(rule, starts, q, context, Z)
    if not scores.folds.fitted:
        return None
    for number, start in enumerate(starts, start=1):
        scores.climb(start, number * MOST_CHOICES)
    chosen = scores.surely_best()
    tried = {choice: scores.tried(choice) for choice in scores.found}
    found = theta if chosen == scores.learned else chosen_theta(starts, chosen, scores.families)
    return Selection(found, tried[chosen], list(tried.values()))
