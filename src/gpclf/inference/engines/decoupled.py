"""The decoupled engine: what the natural engine found, and more points for the mean alone."""

import itertools
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from gpclf.data.rows import KEPT_FLOATS
from gpclf.gaussian import Natural as NaturalForm
from gpclf.inference.context import FitContext, Outcome
from gpclf.inference.decoupled import climb_decoupled, with_mean_points
from gpclf.inference.engines.base import Asked
from gpclf.inference.engines.natural import Natural
from gpclf.inference.natural import Limits
from gpclf.inference.passes import with_kept_features
from gpclf.inference.stops import Stop
from gpclf.model import Theta, prepare

MORE_POINTS = 2  # times as many for the mean alone
CANDIDATES = 4000  # rows that may become points of the mean
STEPS = 30
COUPLED = 0.8  # share of the work, before the points of the mean


class Decoupled(Natural):
    """Orthogonally decoupled bases (Salimbeni et al. 2018): "ORTH" in Liu et al. (2019).

    Parameters
    ----------
    n_mean : "auto" or int
        More points for the mean alone; "auto": twice as many as inducing points.
    optimizer, batch_size, learning_rate, learn_inducing
        Of the natural engine, which goes before.
    """

    name = "decoupled"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_mean": [StrOptions({"auto"}), Interval(Integral, 0, None, closed="left")],
        **{k: v for k, v in Natural._parameter_constraints.items() if k != "class_subset"},
    }
    class_subset = None

    def __init__(
        self,
        n_mean: Any = "auto",
        optimizer: Any = "auto",
        batch_size: Any = "auto",
        learning_rate: Any = "auto",
        learn_inducing: Any = True,
    ):
        self.n_mean = n_mean
        self.optimizer = optimizer
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.learn_inducing = learn_inducing

    def refuse(self, asked: Asked) -> None:
        """The points of the mean are those of one kernel."""
        if not asked.shared:
            raise ValueError(
                'inference="decoupled" needs one kernel and one set of points for all functions: '
                'use share="both".'
            )

    def run(self, theta: Theta, q: NaturalForm, context: FitContext, known: bool) -> Outcome:
        """The coupled fit, then steps on the mean and Λ together."""
        with context.log.scope(0.0, 1.0 if self.n_mean == 0 else COUPLED):
            coupled = super().run(theta, q, context, known)
        size = coupled.theta.Z.shape[-2]
        count = MORE_POINTS * size if self.n_mean == "auto" else int(self.n_mean)
        if count == 0 or not np.isfinite(coupled.objective):
            return coupled
        assert isinstance(coupled.q, NaturalForm)
        prepared, _ = prepare(*coupled.theta, context.jitter)
        part = context.rows.sample(CANDIDATES, context.rng)
        candidates = np.concatenate(part.keep(_real_rows))
        theta, here = with_mean_points(coupled.theta, coupled.q, prepared, candidates, count)
        if here.mean.shape[1] == size:
            return coupled._replace(more=f"; mean: {Stop.NO_POINT}")
        prepared, _ = prepare(*theta, context.jitter)
        most = max(context.rows.chunk_rows, KEPT_FLOATS // here.mean.shape[1])
        some = with_kept_features(prepared, context.rows.sample(most, context.rng))
        total, step = context.rows.total_weight, itertools.count(1)
        here, elbo, stop = climb_decoupled(
            prepared,
            here,
            some if some.n_rows == context.rows.n_rows else context.rows,
            some,
            Limits(STEPS, context.tolerance * total, context.slack(total)),
            lambda elbo, m: context.log.note(
                "mean", elbo / total, COUPLED + (1 - COUPLED) * next(step) / STEPS, theta, m
            ),
        )
        return coupled._replace(
            theta=theta, q=here.moments()[0], objective=elbo, more=f"; mean: {stop}"
        )


def _real_rows(chunk: Any) -> np.ndarray:
    """Those of a chunk that count, in float64."""
    return np.asarray(chunk.X, np.float64)[np.asarray(chunk.weight) > 0]
