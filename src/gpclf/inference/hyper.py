"""Hyper-parameters: the kernel, the likelihood's parameters and Z climb the same ELBO, and a prior.

*dual bound, L-BFGS*: hold the sites (τ, λ), let q follow the features, Λ(θ) = I + Σ τ a(θ)a(θ)ᵀ and
h(θ) = Σ λ a(θ), and maximise the ELBO of that q over θ. Three passes over the chunks give the bound
and its gradient exactly, about 4C + 5 products of size N·M².

*Adam* beside stochastic natural steps, q(v) held in whitened coordinates.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Array

from gpclf.compilation import PLAIN, beside, forgotten_with_programs, program
from gpclf.data import Chunk, reduce
from gpclf.gaussian import Moments, Natural, elbo_pullback, moments
from gpclf.inference.lbfgs import Memory, descend
from gpclf.inference.natural import Visited, stochastic_step, visit_all
from gpclf.inference.sites import (
    Survey,
    blank_features,
    gradient,
    held,
    survey,
    with_features,
    with_prior,
)
from gpclf.likelihoods.base import Sites
from gpclf.model import Model, Prepared, Theta, prepare, prepare_pullback
from gpclf.precision import double_precision

LOG_REACH = 9.0  # every logarithm stays within this distance of where a round began


def _survey(prepared: Prepared, q: Moments, chunk: Chunk, sites: Sites) -> Survey:
    """The variational bound of a row does not know its site."""
    return survey(prepared, q, chunk)


class Evaluation(NamedTuple):
    """An objective at θ, its gradient by θ, and the q there."""

    elbo: float  # NaN where there is none
    by_theta: Theta
    q: Natural
    here: Visited | None = None  # the rows under this q


class Known(NamedTuple):
    """What a first evaluation need not compute: the q of its sites, and the rows under it."""

    q: Natural
    here: Visited
    chunks: Sequence[Chunk]  # with their features


def dual_bound(
    theta: Theta,
    sites: Sequence[Sites],
    chunks: Sequence[Chunk],
    jitter: float,
    rest: Natural | None = None,
    see: Callable[[Prepared, Moments, Chunk, Sites], Survey] = _survey,
    known: Known | None = None,
) -> Evaluation:
    """The ELBO of the q that the held sites give under θ.

    `rest` is added to its natural parameters: what an engine knows of q and the sites do not say.
    An engine whose objective is another sum over rows less the KL says so by `see`.
    """
    prepared, _ = prepare(*theta, jitter)
    if known is None:
        chunks = [with_features(prepared, chunk) for chunk in chunks]
        q = held_together(prepared, sites, chunks)
        if rest is not None:
            q = Natural(*map(np.add, q, rest))
        own = iter(sites)
        here = visit_all(
            prepared,
            q,
            chunks,
            keep_sites=True,
            keep_features=True,
            see=lambda p, m, chunk: see(p, m, chunk, next(own)),
        )
    else:
        q, here, chunks = known
    if here.sums is None:
        return Evaluation(np.nan, theta, q)
    assert here.by_features is not None
    by_q = elbo_pullback(q, here.m, here.sums.by_q)
    by_prepared = reduce(
        lambda triple: gradient(prepared, triple[2], by_q, triple[1], triple[0]),
        zip(chunks, sites, here.by_features, strict=True),
    )
    by_theta = theta_gradient(prepared, by_prepared, here.sums)
    return Evaluation(here.elbo, by_theta, q, here._replace(by_features=None))


def held_together(prepared: Prepared, sites: Sequence[Sites], chunks: Sequence[Chunk]) -> Natural:
    """The q that held sites give."""
    pairs = zip(chunks, sites, strict=True)
    return with_prior(reduce(lambda pair: held(prepared, pair[1], pair[0]), pairs))


class Programs:
    """The programs of the dual bound for chunks of one shape, compiled beside other work.

    XLA works outside Python's lock. Two threads run on zeros what steps on q need, the longest
    first, another what follows them. Python waits for all before it ends, because XLA cannot be
    left in the middle.
    """

    def __init__(self, prepared: Prepared, chunk: Chunk, n_latent: int):
        M, dtype = prepared.Z.shape[-2], chunk.X.dtype
        rows = len(chunk.weight) * prepared.model.inputs.places
        features = blank_features(prepared, chunk)
        seen = replace(chunk, features=features)
        sites = Sites(*np.zeros((2, rows, n_latent), dtype))
        q = Natural.standard(n_latent, M)

        def see() -> None:
            survey(prepared, moments(q)[0], seen)

        def place() -> None:
            with_features(prepared, chunk)

        def follow() -> None:
            by_prepared = gradient(prepared, features, q, sites, seen)
            prepare_pullback(prepared, by_prepared)
            held(prepared, sites, seen)
            log_prior(prepared.model)

        works = (see, place, follow)
        self._threads = [beside(double_precision(work)) for work in works]

    def wait_for_steps(self) -> None:
        """Until those of steps on q are there."""
        for thread in self._threads[:2]:
            thread.join()

    def wait(self) -> None:
        """Until all are there."""
        for thread in self._threads:
            thread.join()


_programs: dict[Any, Programs] = forgotten_with_programs({})


def compiled_beside(prepared: Prepared, chunk: Chunk, n_latent: int) -> Programs:
    """The programs for chunks of this shape; a second call finds the first one's."""
    leaves, structure = jax.tree.flatten((prepared, chunk))
    key = (structure, tuple((leaf.shape, leaf.dtype) for leaf in leaves), n_latent)
    if key not in _programs:
        _programs[key] = Programs(prepared, chunk, n_latent)
    return _programs[key]


def theta_gradient(prepared: Prepared, by_prepared: Prepared, seen: Survey) -> Theta:
    """The gradient by θ, where parameters of the likelihood and the inputs were not prepared."""
    if seen.by_prepared is not None:
        by_prepared = jax.tree.map(np.add, by_prepared, seen.by_prepared)
    by_model, by_Z = prepare_pullback(prepared, by_prepared)
    by_likelihood, by_inputs = seen.by_own
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


Bound = Callable[..., Evaluation]  # with the arguments of `dual_bound`

log_prior = program(jax.value_and_grad(Model.log_prior), PLAIN)  # and its gradient


def improve(
    theta: Theta,
    sites: Sequence[Sites],
    chunks: Sequence[Chunk],
    memory: Memory,
    *,
    evaluations: int,
    jitter: float,
    move_points: bool,
    move_inputs: bool = True,
    on_evaluation: Callable[[float, Theta, Natural], None],
    rest: Natural | None = None,
    bound: Bound = dual_bound,
    known: Known | None = None,
) -> tuple[Theta, Evaluation | None, float]:
    """The best θ by dual bound and prior, what is there, and their sum; so many evaluations.

    Nothing is there where none of them was a number. An engine may bring another `bound`. What is
    `known` of the first θ is not computed again. Inputs and points that do not move stay.
    """
    leaves, structure = jax.tree.flatten(theta)
    first = flat(leaves)
    by_model = jax.tree.map(lambda leaf: np.full(leaf.shape, LOG_REACH), theta.model)
    if not move_inputs:
        by_model = replace(by_model, inputs=jax.tree.map(np.zeros_like, by_model.inputs))
    by_points = np.full(theta.Z.shape, np.inf if move_points else 0.0)
    reach = flat(jax.tree.leaves(Theta(by_model, by_points)))
    rows = float(sum(np.asarray(chunk.weight).sum() for chunk in chunks))
    best: list = [-np.inf, theta, None]
    beforehand = [] if known is None else [known]

    def objective(numbers: np.ndarray) -> tuple[float, np.ndarray]:
        here = jax.tree.unflatten(structure, shaped_like(leaves, numbers))
        more = {"known": beforehand.pop()} if beforehand else {}
        found = bound(here, sites, chunks, jitter, rest, **more)
        by_flat = flat(jax.tree.leaves(found.by_theta))
        if not (np.isfinite(found.elbo) and np.all(np.isfinite(by_flat))):
            return np.inf, np.zeros_like(by_flat)
        on_evaluation(found.elbo, here, found.q)
        expected, by_model = log_prior(here.model)
        total = found.elbo + float(expected)
        by_flat[: len(by_flat) - here.Z.size] += flat(jax.tree.leaves(by_model))  # Z comes last
        if total > best[0]:
            best[:] = [total, here, found]
        return -total / rows, -by_flat / rows

    low, high = first - reach, first + reach
    descend(objective, first, memory, evaluations=evaluations, low=low, high=high)
    return best[1], best[2], best[0]


def adam_start(theta: Any) -> Any:
    """Adam's memory before its first step."""
    import optax  # slow to import, and seldom needed

    return optax.scale_by_adam().init(theta)


@program
def _adam_update(theta: Any, by_theta: Any, state: Any, rate: Any) -> Any:
    import optax

    updates, state = optax.scale_by_adam().update(by_theta, state)
    moved = jax.tree.map(lambda leaf, update: leaf + rate * update, theta, updates)
    return moved, state


def adam_step(
    theta: Theta,
    state: Any,
    prepared: Prepared,
    seen: Survey,
    chunk: Chunk,
    rate: float,
    move_points: bool,
) -> tuple[Theta, Any]:
    """One step of Adam on θ by what was seen of a batch, and its memory; q is held."""
    by_prepared = gradient(prepared, seen.by_features, None, seen.sites, chunk)
    by_theta = theta_gradient(prepared, by_prepared, seen)
    if not move_points:
        by_theta = by_theta._replace(Z=np.zeros_like(by_theta.Z))
    _, by_model = log_prior(theta.model)
    by_theta = by_theta._replace(model=jax.tree.map(np.add, by_theta.model, by_model))
    return _adam_update(theta, by_theta, state, rate)


def stochastic_hyper_step(
    theta: Theta,
    q: Natural,
    state,
    chunk: Chunk,
    *,
    q_rate: float,
    rate: float,
    jitter: float,
    move_points: bool,
    own: Callable[[Natural], Natural] = lambda target: target,
) -> tuple[Theta, Natural, object, float, float, Sites]:
    """One batch moves q by a natural step and θ by Adam; also its bound, KL and sites.

    `own` turns the target of the sites into that of the step.
    """
    prepared, _ = prepare(*theta, jitter)
    m, kl = moments(q)
    chunk = with_features(prepared, chunk)
    seen = survey(prepared, m, chunk)
    q = stochastic_step(q, own(seen.statistics(m).target()), q_rate, seen.sites)
    theta, state = adam_step(theta, state, prepared, seen, chunk, rate, move_points)
    return theta, q, state, float(seen.bound), kl, seen.sites
