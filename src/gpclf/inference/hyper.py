"""Hyper-parameters: the kernel, the likelihood's parameters and Z climb the same objective.

*Dual bound, L-BFGS*: hold the sites (τ, λ), let q follow the features, Λ(θ) = I + Σ τ a(θ)a(θ)ᵀ and
h(θ) = Σ λ a(θ), and maximise the rule's objective of that q, and a prior, over θ. Three passes over
the rows give the bound and its gradient exactly, about 4C + 5 products of size N·M².

*Adam* beside stochastic natural steps, q(v) held in whitened coordinates (`batch_gradient`).
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Array

from gpclf.compilation import PLAIN, program
from gpclf.data import Chunk, Kept, Rows
from gpclf.gaussian import Moments, Natural, elbo_pullback
from gpclf.inference.journal import Journal
from gpclf.inference.optim.lbfgs import Memory, descend
from gpclf.inference.passes import (
    Pass,
    gradient_pass,
    theta_pass,
    with_features,
    with_kept_features,
)
from gpclf.inference.rules import Held, Rule, Seen, held_posterior
from gpclf.model import Model, Prepared, Theta, prepare, prepare_pullback

LOG_REACH = 9.0  # every logarithm stays within this distance of where a round began

log_prior = program(jax.value_and_grad(Model.log_prior), PLAIN)  # and its gradient


class Evaluation(NamedTuple):
    """An objective at θ, its gradient by θ, and the q there."""

    objective: float  # NaN where there is none
    by_theta: Theta
    q: Any  # in the form that an engine has
    here: Seen | None = None  # the rows under this q


class Known(NamedTuple):
    """What a first evaluation need not compute: the q of its sites, and the rows under it."""

    q: Natural
    here: Seen
    rows: Rows  # with their features


class Moves(NamedTuple):
    """What of θ is learned beside the kernel and the likelihood."""

    points: bool = True
    inputs: bool = True


class Problem(NamedTuple):
    """What hyper-parameters are learned from: rows, and what makes up q, held."""

    rule: Rule
    rows: Rows
    held: Held
    jitter: float
    moves: Moves = Moves()
    most_improper: int = 0  # rows without a cavity that an evaluation may have


def dual_objective(problem: Problem, theta: Theta, known: Known | None = None) -> Evaluation:
    """The rule's objective of the q that the held sites give under θ."""
    prepared, _ = prepare(*theta, problem.jitter)
    sites = problem.held.sites
    if known is None:
        rows = with_kept_features(prepared, problem.rows)
        q = held_posterior(prepared, problem.held, rows)
        here = problem.rule.objective(prepared, q, rows, sites)
    else:
        q, here, rows = known
    if here.sums is None or here.improper > problem.most_improper:
        return Evaluation(np.nan, theta, q)
    assert here.by_features is not None
    by_q = elbo_pullback(q, here.m, here.sums.by_q)
    by_prepared = rows.sum(
        lambda chunk, own, by_features: theta_pass(prepared, by_features, by_q, own, chunk),
        sites,
        here.by_features,
    )
    by_theta = theta_gradient(prepared, by_prepared, here.sums)
    return Evaluation(here.objective, by_theta, q, here._replace(by_features=None))


def theta_gradient(prepared: Prepared, by_prepared: Prepared, sums: Pass) -> Theta:
    """The gradient by θ, where parameters of the likelihood and the inputs were not prepared."""
    if sums.by_prepared is not None:
        by_prepared = jax.tree.map(np.add, by_prepared, sums.by_prepared)
    by_model, by_Z = prepare_pullback(prepared, by_prepared)
    by_likelihood, by_inputs = sums.by_own
    by_inputs = jax.tree.map(np.add, by_model.inputs, by_inputs)
    return Theta(replace(by_model, likelihood=by_likelihood, inputs=by_inputs), by_Z)


def flat(leaves: Sequence[Array | np.ndarray | np.floating]) -> np.ndarray:
    """All numbers of some arrays, as a vector."""
    return np.concatenate([np.ravel(leaf) for leaf in leaves])


def shaped_like(leaves: Sequence[Array], numbers: np.ndarray) -> list[Array]:
    """The arrays that `flat` made a vector of."""
    ends = np.cumsum([leaf.size for leaf in leaves])
    parts = np.split(numbers, ends[:-1])
    return jax.device_put([p.reshape(x.shape) for p, x in zip(parts, leaves, strict=True)])


class Improved(NamedTuple):
    """The best θ of a round, what is there, and objective and prior together.

    Nothing is there where none of them was a number.
    """

    theta: Theta
    found: Evaluation | None
    value: float


def improve(
    theta: Theta,
    evaluate: Callable[[Theta, int], Evaluation],
    memory: Memory,
    *,
    total: float,
    evaluations: int,
    moves: Moves,
    on_evaluation: Callable[[float, Theta, Any, int], bool],
    journal: Journal | None = None,
) -> Improved:
    """L-BFGS on an objective and the prior of θ, by so many evaluations; `total`: the rows' weight.

    Both functions are told which evaluation it is. Inputs and points that do not move stay. It ends
    where `on_evaluation` says that the time is up.
    """
    journal = Journal() if journal is None else journal
    leaves, structure = jax.tree.flatten(theta)
    first, reach = flat(leaves), _reach(theta, moves)
    place, count, late = journal.place("best"), itertools.count(), False
    best = place.reached(Improved(theta, None, -np.inf))

    def evaluated(here: Theta, number: int) -> tuple[float, np.ndarray, bool]:
        nonlocal best
        found = evaluate(here, number)
        by_flat = flat(jax.tree.leaves(found.by_theta))
        if not (np.isfinite(found.objective) and np.all(np.isfinite(by_flat))):
            return np.inf, np.zeros_like(by_flat), late
        enough = bool(on_evaluation(found.objective, here, found.q, number))
        expected, by_model = log_prior(here.model)
        value = found.objective + float(expected)
        by_flat[: len(by_flat) - here.Z.size] += flat(jax.tree.leaves(by_model))  # Z comes last
        if value > best.value:
            best = Improved(here, found, value)
            place.put(best)
        return -value / total, -by_flat / total, enough

    def objective(numbers: np.ndarray) -> tuple[float, np.ndarray]:
        nonlocal late
        here = jax.tree.unflatten(structure, shaped_like(leaves, numbers))
        number = next(count)
        value, slope, late = journal.once("evaluation", lambda: evaluated(here, number))
        return value, slope

    low, high = first - reach, first + reach
    limits = {"evaluations": evaluations, "low": low, "high": high}
    descend(objective, first, memory, **limits, late=lambda: late)
    return best


def _reach(theta: Theta, moves: Moves) -> np.ndarray:
    """How far each number of θ may go."""
    by_model = jax.tree.map(lambda leaf: np.full(leaf.shape, LOG_REACH), theta.model)
    if not moves.inputs:
        by_model = replace(by_model, inputs=jax.tree.map(np.zeros_like, by_model.inputs))
    by_points = np.full(theta.Z.shape, np.inf if moves.points else 0.0)
    return flat(jax.tree.leaves(Theta(by_model, by_points)))


def uphill(theta: Theta, by_theta: Theta, move_points: bool) -> Theta:
    """The gradient of objective and prior by θ; none by points that do not move."""
    _, by_model = log_prior(theta.model)
    by_Z = by_theta.Z if move_points else np.zeros_like(by_theta.Z)
    return Theta(jax.tree.map(np.add, by_theta.model, by_model), by_Z)


PassOver = Callable[[Prepared, Moments, Chunk], Any]


def batch_gradient(
    prepared: Prepared, m: Moments, rows: Rows, one_pass: PassOver = gradient_pass
) -> tuple[Pass, Theta, Kept]:
    """The sums of a pass over rows, their gradient by θ with q(v) held, and the rows' sites."""

    def found(chunk: Chunk) -> tuple[tuple, Any]:
        chunk = with_features(prepared, chunk) if chunk.features is None else chunk
        one: Pass = one_pass(prepared, m, chunk)
        by_prepared = theta_pass(prepared, one.by_features, None, one.sites, chunk)
        return (one.sums(), by_prepared), one.sites

    (sums, by_prepared), sites = rows.sum_and_keep(found)
    return sums, theta_gradient(prepared, by_prepared, sums), sites
