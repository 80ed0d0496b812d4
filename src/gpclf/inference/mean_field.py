"""Mean field for the probit (H15 §3.1, eqs. 10–12): a baseline, over-confident by design.

g = f + ε with ε ~ N(0, 1) and y the sign of g; with Q = AAᵀ from the inducing points (the full K
where every row is one) log p(g) ≥ log N(g; 0, Q + I) − ½ tr(K − Q), whatever g is (Titsias 2009).
q(g) = Π q(gₙ), and the best q(gₙ) is a normal law cut off at 0: N(bₙ, 1/Pₙₙ) on the side of yₙ,
P = (Q + I)⁻¹. With ḡ and V the means and variances of these laws the bound is

    −½ log|Q + I| − ½ tr(K − Q) − ½ ḡᵀPḡ
    + Σ { log Φ(yb√Pₙₙ) − ½ log Pₙₙ + ½ Pₙₙ(ḡ − b)² },

maximised over b by L-BFGS for every θ, and over θ by L-BFGS on top: at the best b its gradient by θ
is that with q(g) held. Given g, v ~ N(ΣAᵀg, Σ) with Σ = (I + AᵀA)⁻¹: sites of τ = 1 and λ = g.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.special import log_ndtr

from gpclf.compilation import program
from gpclf.data import Chunk
from gpclf.gaussian import Moments, Natural
from gpclf.inference.hyper import Evaluation, Theta, dual_bound, improve
from gpclf.inference.journal import ENOUGH, NOT_A_NUMBER, FitError
from gpclf.inference.lbfgs import Memory, descend
from gpclf.inference.power_sites import projections
from gpclf.inference.sites import Survey, double, features_of, finite_rows, with_features
from gpclf.inference.work import Work
from gpclf.likelihoods import Sites
from gpclf.linalg import inverse, plain_cholesky
from gpclf.model import Prepared, prepare
from gpclf.precision import cast

ROUND = 6  # evaluations between two looks at what was gained
INNER = 500  # evaluations of the bound for b, at most
LARGEST = 2**27  # numbers of A: one gigabyte

Numbers = Float[np.ndarray, "N"]
Rows = Float[np.ndarray, "N M"]


class Cut(NamedTuple):
    """The normal laws N(b, 1/P) on the side y of 0, row by row."""

    mean: Numbers
    variance: Numbers
    slope: Numbers  # of the mean by b
    constant: Numbers  # what the bound counts for the row besides ḡ and V


def cut(b: Numbers, P: Numbers, y: Numbers) -> Cut:
    """Their moments; with hazard r = φ/Φ at z = yb√P the mean is b + y r/√P."""
    z = y * b * np.sqrt(P)
    log_mass = log_ndtr(z)
    hazard = np.exp(-0.5 * z**2 - 0.5 * np.log(2 * np.pi) - log_mass)
    slope = np.clip(1 - hazard * (hazard + z), 0.0, 1.0)
    excess = y * hazard / np.sqrt(P)  # ḡ − b
    constant = log_mass - 0.5 * np.log(P) + 0.5 * (slope + P * excess**2)
    return Cut(b + excess, slope / P, slope, constant)


class Solved(NamedTuple):
    """The best q(g) under one θ, and its bound."""

    b: Numbers
    laws: Cut
    bound: float
    climbed: list[float]  # the bound, whenever it rose


def solve(A: Rows, y: Numbers, b: Numbers, unexplained: float = 0.0) -> Solved | None:
    """The b with the highest bound, from a first one; None where numbers are none.

    `unexplained`: tr(K − Q), the variance of f at the rows that no inducing point explains.
    """
    factor = plain_cholesky(np.eye(A.shape[1]) + A.T @ A)
    if factor is None:
        return None
    U = A @ inverse(factor)
    P = 1 - np.sum(U * A, axis=1)
    if not np.all(P > 0):  # Q is so large that I is rounding beside it
        return None
    log_det = 2 * np.sum(np.log(np.diagonal(factor)))
    of_prior = -0.5 * (log_det + unexplained)
    climbed: list[float] = []

    def objective(b: Numbers) -> tuple[float, Numbers]:
        laws = cut(b, P, y)
        product = laws.mean - U @ (A.T @ laws.mean)
        rows = laws.constant - 0.5 * laws.slope  # V P is the slope
        bound = float(np.sum(rows)) + of_prior - 0.5 * float(laws.mean @ product)
        if not climbed or bound > climbed[-1]:
            climbed.append(bound)
        by_b = laws.slope * (P * (laws.mean - b) - product)
        return -bound / len(y), -by_b / len(y)

    no_limit = np.full(len(y), np.inf)
    found = descend(objective, b, Memory(), evaluations=INNER, low=-no_limit, high=no_limit)
    laws = cut(found.x, P, y)
    return Solved(found.x, laws, -found.value * len(y), climbed)


@program
def _held_survey(
    prepared: Prepared, q: Moments, chunk: Chunk, sites: Sites, variance: Array, constant: Array
) -> Survey:
    """−½(ḡ − μ)² − ½V − ½s(1 − V) − ½d and a constant, for each row, while q(g) is held."""
    prepared, q = cast((prepared, q), chunk.X.dtype)

    def values(features: Any, q: Moments) -> Float[Array, "N"]:
        mu, s, d = (part[:, 0] for part in projections(prepared, features, q))
        gap = sites.linear[:, 0] - mu
        return constant - 0.5 * (gap**2 + variance + s * (1 - variance) + d)

    rows, pull = jax.vjp(values, features_of(prepared, chunk), q)
    by_features, by_q = pull(jnp.ones_like(rows))
    own = (prepared.model.likelihood, prepared.model.inputs)
    nothing = jax.tree.map(jnp.zeros_like, own)
    total, strange = jnp.sum(rows, dtype=jnp.float64), jnp.sum(~finite_rows(rows))
    return Survey(total, strange, *double((by_q, nothing, None)), by_features, sites)


class MeanField:
    """The bound as a function of θ, each b the start of the next."""

    def __init__(self, chunk: Chunk):
        self.chunk = chunk
        self.y = 2.0 * np.asarray(chunk.y) - 1
        self.b = np.zeros(len(self.y))

    def solve(self, theta: Theta, jitter: float) -> tuple[Solved | None, Rows]:
        """The best q(g) under θ, and the features A."""
        prepared, _ = prepare(*theta, jitter)
        features = with_features(prepared, self.chunk).features
        A = np.asarray(features.A, np.float64)
        A = A.reshape(len(self.y), -1)  # one function, with a kernel of its own or not
        d = np.ravel(np.asarray(features.diagonal, np.float64)) - np.sum(A * A, axis=1)
        unexplained = float(np.sum(np.maximum(d, 0.0)))
        solved = solve(A, self.y, self.b, unexplained) if np.all(np.isfinite(A)) else None
        if solved is not None:
            self.b = solved.b
        return solved, A

    def bound(self, theta, sites, chunks, jitter, rest=None) -> Evaluation:
        """The bound, its gradient and p(v | g = ḡ); in the place of `dual_bound`."""
        solved, A = self.solve(theta, jitter)
        if solved is None:
            return Evaluation(np.nan, theta, Natural.standard(1, A.shape[1]))
        laws = solved.laws
        held = Sites(np.ones((len(A), 1)), laws.mean[:, None])

        def see(prepared: Prepared, m: Moments, chunk: Chunk, sites: Sites) -> Survey:
            return _held_survey(prepared, m, chunk, sites, laws.variance, laws.constant)

        return dual_bound(theta, [held], [self.chunk], jitter, None, see)

    def posterior(self, theta: Theta, jitter: float, plug_in: bool) -> tuple[Natural, float]:
        """q(v): Σ of v given g and, unless g is plugged in at its mean, ΣAᵀVAΣ of g itself.

        In natural form Λ = B(B + AᵀVA)⁻¹B with B = I + AᵀA. H15 leaves the second part out.
        """
        solved, A = self.solve(theta, jitter)
        if solved is None:
            raise FitError(NOT_A_NUMBER)
        B, linear = np.eye(A.shape[1]) + A.T @ A, A.T @ solved.laws.mean
        if not plug_in:
            more = B + (A * solved.laws.variance[:, None]).T @ A
            linear, precision = B @ np.linalg.solve(more, linear), B @ np.linalg.solve(more, B)
            B = 0.5 * (precision + precision.T)
        return Natural(linear[None], B[None]), solved.bound


def run_mean_field(theta: Theta, q: Natural, work: Work) -> tuple[Theta, Natural, float, str]:
    """θ unless the plan keeps it, q(v), the bound, and why it ended; all rows, in float64."""
    stream, plan, _, log = work
    if stream.n_rows * theta.Z.shape[-2] > LARGEST:
        raise ValueError(
            "Mean field holds all rows at once, and here they are too many: use fewer inducing "
            'points or inference="natural".'
        )
    (chunk,) = cast(list(stream.whole(stream.n_rows)), jnp.float64)
    field, memory, done, before, stopped = MeanField(chunk), Memory(), 0, -np.inf, "fixed"
    while plan.optimizer == "lbfgs" and done < plan.evaluations:
        evaluations = min(ROUND, plan.evaluations - done)
        theta, better, bound = improve(
            theta,
            [],
            [chunk],
            memory,
            evaluations=evaluations,
            jitter=plan.jitter,
            move_points=plan.move_points,
            bound=field.bound,
            on_evaluation=lambda bound, theta, q, s=done / plan.evaluations: log.note(
                "hyper-parameters", bound / stream.n_rows, s, theta, q
            ),
        )
        done, stopped = done + evaluations, "evaluation limit"
        if better is None:
            stopped = "the bound is not a number: kept as they were"
            break
        log.score(theta, better.q)
        if log.enough:
            stopped = ENOUGH
            break
        if bound - before < 0.5 * evaluations * plan.tolerance * stream.n_rows:
            stopped = "converged"
            break
        before = bound
    theta, _ = log.best(theta, q)
    q, bound = field.posterior(theta, plan.jitter, plan.inference == "mean-field-plug-in")
    log.note("all rows", bound / stream.n_rows, 1.0, theta, q)
    return theta, q, bound, f"hyper-parameters: {stopped}; posterior: converged"
