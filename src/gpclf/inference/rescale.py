"""How sure the kernel is, by the score of rows left out: two numbers at the end of a fit.

A bound, and the evidence, choose functions that are too small and too smooth: their classes are
right and their probabilities timid. Two factors, of all lengthscales and of the variance, are few
numbers for many rows, so that folds of the rows can choose them with little to overfit. The search
goes from one choice to its neighbours and stays where none is better; a choice counts only if it
beats the kernel as it was learned by more than the standard error of that.
"""

from dataclasses import replace
from typing import NamedTuple

from gpclf.gaussian import Natural
from gpclf.inference.context import FitContext
from gpclf.inference.left_out import FOLDS, FoldScores, fold_scores, folds_of
from gpclf.inference.natural import Limits
from gpclf.inference.passes import with_kept_features
from gpclf.inference.rules import Rule
from gpclf.model import Theta, prepare

LENGTHSCALES = (1.0, 0.6, 0.35)
VARIANCES = (1.0, 5.0, 25.0)
FIRST_STEPS, STEPS = 20, 8  # on the q of a fold: from the prior, and from a choice beside
MOST_ROWS = 4096  # that folds are made of


class Choice(NamedTuple):
    """Factors of the lengthscales and of the variance."""

    lengthscale: float
    variance: float


AS_LEARNED = Choice(1.0, 1.0)


class Rescaled(NamedTuple):
    """θ with the factors that were chosen, and what each choice scored on rows left out."""

    theta: Theta
    chosen: Choice
    tried: dict[Choice, FoldScores]


def stretched(theta: Theta, choice: Choice) -> Theta:
    """θ with its kernel stretched."""
    kernel = theta.model.kernel.stretched(*choice)
    return theta._replace(model=replace(theta.model, kernel=kernel))


def rescale(rule: Rule, theta: Theta, q: Natural, context: FitContext) -> Rescaled:
    """Try factors near those that are best so far, until no neighbour is better."""
    rows = context.rows.sample(MOST_ROWS, context.rng)
    folds = folds_of(rows, context.rng)
    total = rows.total_weight
    limits = Limits(STEPS, context.tolerance * total, context.slack(total))
    tried: dict[Choice, FoldScores] = {}
    # not from the q of all rows: it knows those left out
    ends = {AS_LEARNED: [Natural.standard(*q.linear.shape)] * FOLDS}

    def score(choice: Choice, near: Choice) -> float:
        if choice not in tried:
            prepared, _ = prepare(*stretched(theta, choice), context.jitter)
            kept = with_kept_features(prepared, rows)
            own = limits if tried else limits._replace(steps=FIRST_STEPS)
            tried[choice], ends[choice] = fold_scores(rule, prepared, ends[near], kept, folds, own)
        return tried[choice].mean

    best, before = AS_LEARNED, None
    score(AS_LEARNED, AS_LEARNED)
    while best != before:
        before = best
        for choice in _neighbours(before):
            if score(choice, before) > tried[best].mean:
                best = choice
    gain, error = tried[best].gain(tried[AS_LEARNED])
    chosen = best if gain > error else AS_LEARNED
    return Rescaled(stretched(theta, chosen), chosen, tried)


def _neighbours(choice: Choice) -> list[Choice]:
    """One step along either factor."""
    found = []
    for name, values in (("variance", VARIANCES), ("lengthscale", LENGTHSCALES)):
        at = values.index(getattr(choice, name))
        for other in (at + 1, at - 1):
            if 0 <= other < len(values):
                found.append(choice._replace(**{name: values[other]}))
    return found
