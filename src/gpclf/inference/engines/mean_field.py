"""The mean-field engine: a baseline for the probit, over-confident by design."""

from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import StrOptions

from gpclf.gaussian import Natural
from gpclf.inference.context import FitContext, Outcome
from gpclf.inference.engines.base import Asked, Engine, refuse_noise
from gpclf.inference.hyper import Evaluation, improve
from gpclf.inference.journal import Place
from gpclf.inference.mean_field import MeanFieldBound
from gpclf.inference.optim.lbfgs import Memory
from gpclf.inference.plan import ROUND, Plan, Sizes, make_plan
from gpclf.inference.stops import Stop
from gpclf.likelihoods import Probit
from gpclf.model import Theta

LARGEST = 2**27  # numbers of the features of all rows: one gigabyte


class MeanField(Engine):
    """Truncated normal laws for the probit (Hensman et al. 2015, §3.1): two classes.

    Parameters
    ----------
    predictive : "integrated" or "plug-in"
        Whether the variance of g is part of predictions, or g is taken at its mean, as the paper
        does.
    optimizer : "auto", "lbfgs" or None
        L-BFGS on the bound for hyper-parameters, or None to keep them.
    learn_inducing : bool
        Whether inducing points move, too, when the kernel is learned.
    """

    name = "mean-field"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "predictive": [StrOptions({"integrated", "plug-in"})],
        "optimizer": [StrOptions({"auto", "lbfgs"}), None],
        "learn_inducing": ["boolean"],
    }

    def __init__(
        self,
        predictive: Any = "integrated",
        optimizer: Any = "auto",
        learn_inducing: Any = True,
    ):
        self.predictive = predictive
        self.optimizer = optimizer
        self.learn_inducing = learn_inducing

    def refuse(self, asked: Asked) -> None:
        """Only the probit is a sign with normal noise."""
        refuse_noise(self, asked)
        if type(asked.likelihood) is not Probit:
            raise ValueError(
                'inference="mean-field" is for two classes and likelihood="probit", not '
                f"{type(asked.likelihood).__name__}."
            )
        if not asked.even:
            raise ValueError('inference="mean-field" counts every row once: weights must be 1.')

    def plan(self, sizes: Sizes, max_epochs: int | str) -> Plan:
        """Rounds on all rows."""
        if sizes.n_rows * sizes.n_inducing > LARGEST:
            raise ValueError(
                "Mean field holds the features of all rows at once, and here they are too many: "
                'use fewer inducing points or inference="natural".'
            )
        return make_plan(sizes, optimizer=self.optimizer, max_epochs=max_epochs)

    def run(self, theta: Theta, q: Natural, context: FitContext, known: bool) -> Outcome:
        """θ unless it is kept, then q(v); all rows, in float64."""
        log, bound = context.log, MeanFieldBound(context.rows.in_double(), context.jitter)
        theta, stop = self._learned(theta, bound, context)
        theta, _ = log.best(theta, q)
        found = bound.posterior(theta, self.predictive == "plug-in")
        if found is None:
            raise context.failure(theta, q)
        log.note("all rows", found[1] / context.rows.total_weight, 1.0, theta, found[0])
        return Outcome(theta, *found, stop, Stop.CONVERGED)

    def _learned(
        self, theta: Theta, bound: MeanFieldBound, context: FitContext
    ) -> tuple[Theta, Stop]:
        """θ by rounds of L-BFGS."""
        plan, log, journal = context.plan, context.log, context.journal
        stop, total, place = Stop.FIXED, context.rows.total_weight, journal.place("reached")
        done, theta, pairs, before, b = place.reached((0, theta, (), -np.inf, bound.b))
        memory, bound.b = Memory(pairs), b
        while plan.optimizer == "lbfgs" and done < plan.evaluations:
            evaluations, share = min(ROUND, plan.evaluations - done), done / plan.evaluations
            with journal.inside("round", done):
                start = journal.place("b")  # each b is the start of the next
                bound.b = start.reached(bound.b)

                def evaluate(theta: Theta, _: int, start: Place = start) -> Evaluation:
                    found = bound(theta)
                    start.put(bound.b)
                    return found

                better = improve(
                    theta,
                    evaluate,
                    memory,
                    total=total,
                    evaluations=evaluations,
                    moves=context.moves,
                    on_evaluation=lambda value, theta, q, _, s=share: log.note(
                        "hyper-parameters", value / total, s, theta, q
                    ),
                    journal=journal,
                )
            done, stop = done + evaluations, Stop.EVALUATIONS
            if better.found is None:
                stop = Stop.NOT_A_NUMBER
                break
            theta = better.theta
            log.score(theta, better.found.q)
            if log.enough or better.value - before < 0.5 * evaluations * context.tolerance * total:
                stop = log.ending if log.enough else Stop.CONVERGED
                break
            before = better.value
            place.mark((done, theta, memory.pairs, before, bound.b))
        return theta, stop
