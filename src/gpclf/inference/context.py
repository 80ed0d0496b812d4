"""A fit under way: what every engine is given beside θ and q."""

from typing import Any, NamedTuple

import numpy as np

from gpclf.data import Chunk, Rows
from gpclf.gaussian import Moments, Natural, moments
from gpclf.inference.history import History
from gpclf.inference.hyper import Moves
from gpclf.inference.journal import Journal
from gpclf.inference.loo import LeaveOneOut
from gpclf.inference.passes import finite_in_chunk
from gpclf.inference.plan import Plan
from gpclf.inference.stops import FitError, Stop
from gpclf.kernels import Stationary
from gpclf.model import Theta, prepare

TRY = 'try fewer inducing points, a larger lengthscale, or precision="double".'


class FitContext(NamedTuple):
    """The rows, where what happens is written down, random numbers, and what holds for all."""

    rows: Rows
    plan: Plan
    log: History
    rng: np.random.Generator
    journal: Journal
    tolerance: float  # nats per row below which a step or round has converged
    jitter: float
    dtype: np.dtype
    moves: Moves = Moves()
    families: tuple[type[Stationary], ...] = ()  # that the kernel may be of, ever rougher
    points: int = 0  # that q may have, of many functions with one covariance

    def slack(self, total: float) -> float:
        """How much of an objective is rounding."""
        return float(np.finfo(self.dtype).eps) * 10 * total

    def failure(self, theta: Theta, q: Natural | Moments) -> FitError:
        """What became no number, and in which row first."""
        step = f"step {len(self.log.lines)}: "
        prepared, _ = prepare(*theta, self.jitter)
        if not np.all(np.isfinite(np.asarray(prepared.whitening.matrix))):
            return FitError(f"{step}the kernel matrix of the inducing points is no number; {TRY}")
        m = moments(q)[0] if isinstance(q, Natural) else q
        gaussian = all(np.all(np.isfinite(part)) for part in (m.mean, m.excess))
        if not gaussian:  # a row that is strange under the prior made it so
            m = moments(Natural.standard(*m.mean.shape))[0]

        def strange(chunk: Chunk) -> np.ndarray:
            finite = np.asarray(finite_in_chunk(prepared, m, chunk))
            return np.asarray(chunk.rows)[~finite & (np.asarray(chunk.weight) > 0)]

        found = np.concatenate(self.rows.keep(strange))
        if not len(found) and not gaussian:
            return FitError(f"{step}the posterior is no Gaussian any more; {TRY}")
        if not len(found):
            return FitError(f"{step}the ELBO is not a number, though that of each row is; {TRY}")
        return FitError(
            f"{step}the bound is not a number in {len(found)} of {self.rows.n_rows} rows, first "
            f"row {int(found.min())}; {TRY}"
        )


class Outcome(NamedTuple):
    """Where an engine ended, the objective of all rows there, and why."""

    theta: Theta
    q: Natural | Moments
    objective: float
    hyper: Stop
    posterior: Stop
    more: str = ""  # what else there is to say
    tried: list[dict[str, Any]] | None = None  # kernels, by rows left out
    left_out: LeaveOneOut | None = None  # where q is the sum of its sites

    @property
    def stopped(self) -> str:
        """In words."""
        return f"hyper-parameters: {self.hyper}; posterior: {self.posterior}{self.more}"
