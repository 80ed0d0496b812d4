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
from typing import NamedTuple

from gpclf.data.rows import KEPT_FLOATS
from gpclf.gaussian import Natural
from gpclf.inference.context import FitContext
from gpclf.inference.left_out import Folds, RowScores, fold_scores
from gpclf.inference.natural import Limits
from gpclf.inference.rules import Rule
from gpclf.kernels import Stationary
from gpclf.model import Points, Theta, prepare

SHORTER, SURER = 0.6, 4.0  # one step of the lengthscales, one of the variance
MOST_ROWS = 4096  # that folds are made of
MOST_CHOICES = 16
FIRST_STEPS, STEPS = 15, 6  # on the q of a fold: from the prior, and from a choice beside
TOLERANCE = 10.0  # times that of the fit, for these
BETTER = 0.2  # standard errors by which the next choice must beat the last


class Choice(NamedTuple):
    """Steps from the kernel as it was learned: rougher, shorter, surer."""

    rougher: int = 0
    shorter: int = 0
    surer: int = 0

    def moved(self, way: "Choice") -> "Choice":
        """One step along a way."""
        return Choice(*(here + step for here, step in zip(self, way, strict=True)))


AS_LEARNED = Choice()
LOWEST, HIGHEST = Choice(-1, -1, -1), Choice(2, 3, 3)
WAYS = [Choice(surer=1), Choice(rougher=1), Choice(shorter=1)]
WAYS += [Choice(*(-step for step in way)) for way in WAYS]


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

    def __init__(self, rule: Rule, theta: Theta, q: Natural, context: FitContext, Z: Points):
        self.rule, self.theta, self.q, self.context = rule, theta, q, context
        self.first = theta._replace(Z=Z)
        own = 1 if theta.model.shared else len(q.linear)
        most = min(MOST_ROWS, KEPT_FLOATS // (own * theta.Z.shape[-2]))
        self.folds = Folds.of(context.rows.sample(most, context.rng), context.rng)
        total = self.folds.rows.total_weight
        self.limits = Limits(STEPS, TOLERANCE * context.tolerance * total, context.slack(total))
        self.found: dict[Choice, RowScores] = {}
        self.ends: dict[Choice, list[Natural]] = {}

    def of(self, choice: Choice, near: Choice) -> RowScores:
        """Its score, with steps from where a neighbour ended."""
        if choice not in self.found:
            context = self.context
            theta = chosen_theta(self.first, choice, context.families)
            prepared, _ = prepare(*theta, context.jitter)
            folds = self.folds.under(prepared)
            same = replace(prepared, model=self.theta.model)  # whose programs are there already
            starts, limits = self.ends.get(near), self.limits
            if starts is None:  # not from the q of all rows: it knows those left out
                starts = [Natural.standard(*self.q.linear.shape)] * folds.fitted
                limits = limits._replace(steps=FIRST_STEPS)
            best = self.found.get(near)
            scores = fold_scores(self.rule, same, folds, starts, limits, best)
            self.found[choice], self.ends[choice] = scores
            context.log.remind("rows left out", len(self.found) / MOST_CHOICES, self.theta, self.q)
        return self.found[choice]

    def better(self, choice: Choice, than: Choice) -> bool:
        """Whether a choice beats another, and the best before it, by more than chance would."""
        gain, error = self.of(choice, than).gain(self.found[than])
        beaten = len(self.ends[choice]) < self.folds.fitted  # clearly, by that one or one before
        return not beaten and gain > BETTER * error

    def surely_best(self) -> Choice:
        """The highest gain less its error; that of the kernel as learned is 0."""
        whole = [c for c in self.found if len(self.ends[c]) == self.folds.fitted]
        tried = {choice: self.tried(choice) for choice in whole}
        return max(whole, key=lambda choice: tried[choice].gain - tried[choice].error)

    def tried(self, choice: Choice) -> Tried:
        """For the record."""
        theta = chosen_theta(self.theta, choice, self.context.families)
        scores = self.found[choice]
        return Tried(
            type(theta.model.kernel).__name__,
            SHORTER**choice.shorter,
            SURER**choice.surer,
            scores.mean,
            *scores.gain(self.found[AS_LEARNED]),
        )


def chosen_theta(theta: Theta, choice: Choice, families: tuple[type[Stationary], ...]) -> Theta:
    """θ with its kernel stretched, and of another family where that is chosen."""
    kernel = theta.model.kernel
    if choice.rougher:
        assert isinstance(kernel, Stationary)
        kernel = kernel.of_family(families[families.index(type(kernel)) + choice.rougher])
    kernel = kernel.stretched(SHORTER**choice.shorter, SURER**choice.surer)
    return theta._replace(model=replace(theta.model, kernel=kernel))


def _possible(choice: Choice, theta: Theta, families: tuple[type[Stationary], ...]) -> bool:
    kind = type(theta.model.kernel)
    if choice.rougher and kind not in families:
        return False
    if choice.rougher and not 0 <= families.index(kind) + choice.rougher < len(families):
        return False
    return all(low <= at <= high for low, at, high in zip(LOWEST, choice, HIGHEST, strict=True))


def select(
    rule: Rule, theta: Theta, q: Natural, context: FitContext, Z: Points
) -> Selection | None:
    """The best kernel near the one that was learned, by rows left out; q is of that one.

    Z: the inducing points that the fit began with. None where rows are too few for folds.
    """
    scores = _Scores(rule, theta, q, context, Z)
    if not scores.folds.fitted:
        return None
    scores.of(AS_LEARNED, AS_LEARNED)
    best, before = AS_LEARNED, None
    while best != before:
        before = best
        for way in WAYS:
            there = best.moved(way)
            full = len(scores.found) >= MOST_CHOICES and there not in scores.found
            if full or not _possible(there, theta, context.families):
                continue
            if scores.better(there, best):
                best = there
    chosen = scores.surely_best()
    tried = {choice: scores.tried(choice) for choice in scores.found}
    found = theta if chosen == AS_LEARNED else chosen_theta(theta, chosen, context.families)
    return Selection(found, tried[chosen], list(tried.values()))
