"""What moves in epochs of natural steps: q alone, or θ by Adam beside it; for three kinds of q."""

from typing import Any

import jax
import numpy as np

from gpclf.data import Chunk, Kept, Rows
from gpclf.gaussian import Moments, Natural, moments
from gpclf.inference.class_subset import AllClasses, ClassDraws
from gpclf.inference.context import FitContext
from gpclf.inference.decoupled import DecoupledForm
from gpclf.inference.drivers.epochs import LEAST_RATE, Mover, Step, natural_rate
from gpclf.inference.hyper import PassOver, batch_gradient, uphill
from gpclf.inference.natural import any_negative, first_for_batches, stochastic_step, tempered
from gpclf.inference.optim.adaptive import Adaptive, falling
from gpclf.inference.passes import Pass, gradient_pass, held_sum, with_features, with_prior
from gpclf.inference.power_passes import Fraction, tied_pass
from gpclf.likelihoods import Sites
from gpclf.model import Prepared, Theta, prepare

ADAM_RATE = 0.01


class _Moving(Mover):
    """θ and q, the rate of a step on q, and Adam on θ where it is learned beside them."""

    def __init__(self, theta: Theta, q: Natural, context: FitContext, seen: int):
        if not seen:
            q, seen = first_for_batches(theta, q, context.rows, context.jitter, context.rng)
        self.theta, self.q, self.context, self.seen = theta, q, context, seen
        self.learns = context.plan.optimizer == "adam"
        self.adam: Adaptive | None = None
        self.prepared = self._prepare()

    def _prepare(self) -> Prepared:
        return prepare(self.theta.model, self.theta.Z, self.context.jitter)[0]

    def rate(self, now: Step, slower: float = 1.0) -> float:
        """Of a step on q: falls to 0 with the last."""
        plan = self.context.plan
        own = natural_rate(now.number / slower, self.seen / plan.batch_rows)
        own = max(own, LEAST_RATE) if self.learns else own
        return falling(plan.rate or own, now.share)

    def learn(self, by_theta: Theta, now: Step) -> None:
        """A step of Adam on θ; q is held."""
        if self.adam is None:
            self.adam = Adaptive("adam", jax.device_put(self.theta))
        slope = uphill(self.theta, by_theta, self.context.moves.points)
        self.theta = self.adam.step(self.theta, slope, falling(ADAM_RATE, now.share))
        self.prepared = self._prepare()

    def seen_under(
        self, m: Moments, batch: Rows, one_pass: PassOver
    ) -> tuple[Pass, Theta | None, Natural, Kept[Sites]]:
        """A batch under moments: its sums, their gradient by θ, its sites together and apart."""
        kept = batch.keeping(lambda chunk: with_features(self.prepared, chunk), 0)
        if self.learns:
            sums, by_theta, sites = batch_gradient(self.prepared, m, kept, one_pass)
        else:
            sums, sites = kept.sum_and_keep(
                lambda chunk: ((one := one_pass(self.prepared, m, chunk)).sums(), one.sites)
            )
            by_theta = None
        summed = kept.sum(lambda chunk, own: held_sum(self.prepared, own, chunk), sites)
        return sums, by_theta, with_prior(summed), sites

    def point(self) -> tuple[Theta, Natural | Moments]:
        """θ and q as they are."""
        return self.theta, self.q

    def state(self) -> Any:
        """θ, q, and what Adam has seen; `seen` is known from the start."""
        return self.theta, self.q, None if self.adam is None else self.adam.numbers()

    def go_on(self, state: Any) -> None:
        """From another's."""
        self.theta, self.q, numbers = state
        if numbers is not None:
            self.adam = Adaptive("adam", jax.device_put(self.theta))
            self.adam.go_on(numbers)
        self.prepared = self._prepare()


class NaturalSteps(_Moving):
    """Variational sites of all classes, or of a few that are drawn for each step."""

    def __init__(
        self, theta: Theta, q: Natural, context: FitContext, seen: int, drawn: int | None = None
    ):
        self.classes = (
            AllClasses() if drawn is None else ClassDraws.of(theta, context.rows.n_rows, q, drawn)
        )
        super().__init__(theta, q, context, seen)
        self.theta = self.classes.narrowed(self.theta)
        self.prepared = self._prepare()
        self.q = Natural(np.array(self.q.linear), np.array(self.q.precision))  # written in place

    def step(self, batch: Rows, now: Step) -> float:
        """One natural step, and θ by Adam where that is learned."""
        classes = self.classes
        drawn = classes.draw(self.context.rng)
        part = Natural(self.q.linear[drawn], self.q.precision[drawn])
        m, kl = moments(part)
        rate = self.rate(now, classes.factor)
        if self.learns:
            sums, by_theta, sites = batch_gradient(
                self.prepared, m, batch, lambda p, m, chunk: classes.gradient(p, m, chunk, drawn)
            )
            statistics = sums.statistics(m)
        else:
            statistics, sites = batch.sum_and_keep(
                lambda chunk: classes.step(self.prepared, m, chunk, drawn)
            )
            by_theta = None
        target = classes.target(statistics.target())
        self.q.linear[drawn], self.q.precision[drawn] = stochastic_step(
            part, target, rate, any_negative(*sites)
        )
        if by_theta is not None:
            self.learn(by_theta, now)
        return float(statistics.bound) - classes.factor * kl

    def point(self) -> tuple[Theta, Natural]:
        """With the likelihood of all classes."""
        return self.classes.widened(self.theta), self.q

    def state(self) -> Any:
        """With what rows remember of classes; the likelihood of some of them has no numbers."""
        theta, *rest = super().state()
        return (self.classes.widened(theta), *rest), self.classes.memory()

    def go_on(self, state: Any) -> None:
        """From another's."""
        (theta, *rest), memory = state
        self.classes.go_on(memory)
        super().go_on((self.classes.narrowed(theta), *rest))


class DecoupledSteps(_Moving):
    """More points for the mean alone: the natural step of all points, seen through fewer.

    (h, P) of all points move as those of the coupled family do, towards Σ λ(a,b) and
    I + Σ τ(a,b)(a,b)ᵀ. The mean is P⁻¹h, and Λ the block of the first `size` points in P: sites
    under these lead to where nothing leads up the decoupled bound.
    """

    def __init__(self, theta: Theta, q: Natural, context: FitContext, seen: int, size: int):
        super().__init__(theta, q, context, seen)
        self.size = size

    def form(self) -> DecoupledForm:
        """The mean of all points, and Λ of those that have one."""
        Lambda = np.asarray(self.q.precision)[:, : self.size, : self.size]
        return DecoupledForm(np.asarray(moments(self.q)[0].mean), Lambda)

    def step(self, batch: Rows, now: Step) -> float:
        """One step on (h, P), and on θ where that is learned."""
        m, kl = self.form().moments()
        sums, by_theta, target, sites = self.seen_under(m, batch, gradient_pass)
        if sums.beyond is not None:
            target = target._replace(linear=target.linear + sums.beyond)
        self.q = stochastic_step(self.q, target, self.rate(now), any_negative(*sites))
        if by_theta is not None:
            self.learn(by_theta, now)
        return float(sums.bound) - kl

    def point(self) -> tuple[Theta, Moments]:
        """θ, and the moments of the decoupled q."""
        return self.theta, self.form().moments()[0]


class TiedSteps(_Moving):
    """Stochastic EP: one site for all rows, so that memory does not grow with them.

    All N rows have the same site, the N-th part of what q knows beyond the prior. So all rows of a
    batch have the same cavity, q without the share α/N of that (Li, Hernández-Lobato & Turner
    2015), and it is always proper. Sites from its tilted moments give the target of the usual
    stochastic step. With Φ = ½hᵀm − ½ log|Λ| the energy is
    Φ(q) + 1/α { Σ w log Z + N (Φ(cavity) − Φ(q)) }.
    """

    def __init__(self, theta: Theta, q: Natural, context: FitContext, seen: int, alpha: float):
        super().__init__(theta, q, context, seen)
        self.alpha = alpha
        self.without = 0  # rows of this epoch that have no site

    def state(self) -> Any:
        """With the rows that have no site."""
        return super().state(), self.without

    def go_on(self, state: Any) -> None:
        """From another's."""
        own, self.without = state
        super().go_on(own)

    def step(self, batch: Rows, now: Step) -> float:
        """One step on q, and on θ where that is learned; rows without a site are counted."""
        total = self.context.rows.total_weight
        cavity = tempered(self.q, 1 - min(1.0, self.alpha / total))
        m, _ = moments(cavity)
        without = []

        def tied(prepared: Prepared, m: Moments, chunk: Chunk) -> Pass:
            found, none = tied_pass(prepared, m, chunk, Fraction(self.alpha))
            without.append(int(none))
            return found

        sums, by_theta, target, sites = self.seen_under(m, batch, tied)
        inside = log_normaliser(self.q, moments(self.q)[0])
        energy = float(sums.bound) + inside
        energy += total / self.alpha * (log_normaliser(cavity, m) - inside)
        self.q = stochastic_step(self.q, target, self.rate(now), any_negative(*sites))
        if by_theta is not None:
            self.learn(by_theta, now)
        first = now.number % -(-self.context.rows.n_rows // self.context.plan.batch_rows) == 0
        self.without = sum(without) + (0 if first else self.without)
        return energy


def log_normaliser(q: Natural, m: Moments) -> float:
    """Φ = ½hᵀm − ½ log|Λ|, summed over functions."""
    log_det = sum(np.linalg.slogdet(precision)[1] for precision in q.precision)
    return float(0.5 * np.sum(q.linear * np.asarray(m.mean)) - 0.5 * log_det)
