"""Epochs of stochastic natural steps, on all classes or on a few drawn for each step."""

import numpy as np

from gpclf.gaussian import Natural, moments
from gpclf.inference.class_draws import AllClasses, ClassDraws
from gpclf.inference.hyper import Theta, adam_start, stochastic_hyper_step
from gpclf.inference.journal import ENOUGH, FitError
from gpclf.inference.natural import begin_with_some, stochastic_step
from gpclf.inference.sites import visit
from gpclf.inference.work import Work
from gpclf.likelihoods.logistic_softmax import LogisticSoftmaxFamily
from gpclf.model import prepare

ADAM_RATE = 0.01
FIRST_RATE, FALL = 0.5, 0.6  # of natural steps: falls as this power of their number
LEAST_RATE = 0.02  # beside Adam, whose θ moves on
ROWS_PER_NOTE = 2**17  # an epoch of more rows is heard of while it runs


def natural_rate(step: float, seen: float) -> float:
    """The rate of a step: at first its share of the batches that q already stands for."""
    late = max(1.0, FIRST_RATE * seen) ** (1 / FALL) - 1
    return FIRST_RATE * (1 + step / 10 + late) ** -FALL


def falling(rate: float, share: float) -> float:
    """The rate after a share of all steps: half a cosine, from `rate` to 0.

    The noise of the batches moves a place by about the rate: a last one that falls to nothing
    stands for the mean of many. So there is no earlier place where epochs have converged.
    """
    return rate * 0.5 * (1 + np.cos(np.pi * share))


def run_epochs(
    theta: Theta,
    q: Natural,
    work: Work,
    seen: int,
) -> tuple[Theta, Natural, float, str]:
    """Natural steps on batches, with Adam on θ beside them where the plan says so.

    Also an estimate of the ELBO, and why it stopped. At first q stands for `seen` rows.
    """
    stream, plan, rng, log = work
    if plan.drawn_classes is None:
        classes: AllClasses | ClassDraws = AllClasses()
    else:
        whole = theta.model.likelihood
        assert isinstance(whole, LogisticSoftmaxFamily)
        classes = ClassDraws(whole, stream.n_rows, len(q.linear), plan.drawn_classes)
    if not seen:
        q, seen = begin_with_some(theta, q, stream, plan, rng)
    theta = classes.narrowed(theta)
    total = float(stream.weight.sum())
    state = adam_start(theta)
    prepared, _ = prepare(*theta, plan.jitter)
    q = Natural(np.array(q.linear), np.array(q.precision))  # drawn parts of it are written in place
    step, elbos, why = 0, [], "epoch limit"
    n_batches = -(-stream.n_rows // plan.batch_rows)
    between = max(1, ROWS_PER_NOTE // plan.batch_rows)
    for epoch in range(plan.max_epochs):
        estimates = []
        for batch, rows in enumerate(stream.batches(plan.batch_rows, rng), 1):
            rate = plan.rate or natural_rate(step / classes.factor, seen / plan.batch_rows)
            if plan.optimizer == "adam" and plan.rate is None:
                rate = max(rate, LEAST_RATE)
            share = (epoch + (batch - 1) / n_batches) / plan.max_epochs
            rate = falling(rate, share)
            step += 1
            drawn = classes.draw(rng)
            chunk = classes.seen_by(rows, drawn)
            part = Natural(q.linear[drawn], q.precision[drawn])
            if plan.optimizer == "adam":
                theta, part, state, bound, kl, sites = stochastic_hyper_step(
                    theta,
                    part,
                    state,
                    chunk,
                    q_rate=rate,
                    rate=falling(ADAM_RATE, share),
                    jitter=plan.jitter,
                    move_points=plan.move_points,
                    own=classes.target,
                )
            else:
                m, kl = moments(part)
                statistics, sites = visit(prepared, m, chunk)
                bound = float(statistics.bound)
                target = classes.target(statistics.target())
                part = stochastic_step(part, target, rate, sites)
            classes.remember(sites, chunk, drawn)
            q.linear[drawn], q.precision[drawn] = part
            estimates.append(bound - classes.factor * kl)
            if batch % between == 0 or batch == n_batches:
                share = (epoch + batch / n_batches) / plan.max_epochs
                elbo = float(np.mean(estimates[-between:])) / total
                log.note("epochs", elbo, share, classes.widened(theta), q)
        elbo = float(np.mean(estimates))
        if not np.isfinite(elbo):
            raise FitError(f"epoch {epoch + 1}: the ELBO is not a number.")
        elbos.append(elbo)
        log.score(classes.widened(theta), q)
        if log.enough:
            why = ENOUGH
            break
    return *log.best(classes.widened(theta), q), elbos[-1], why
