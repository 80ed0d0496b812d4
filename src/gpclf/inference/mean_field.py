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
from gpclf.data import Chunk, Kept, Rows
from gpclf.gaussian import Moments, Natural, moments
from gpclf.inference.hyper import Evaluation, Problem, dual_objective
from gpclf.inference.optim.lbfgs import Memory, descend
from gpclf.inference.passes import Pass, double, features_of, finite_rows, with_features
from gpclf.inference.power_passes import projections
from gpclf.inference.rules import Held, Seen, Variational
from gpclf.likelihoods import Sites
from gpclf.linalg import inverse, plain_cholesky
from gpclf.model import Prepared, Theta, prepare
from gpclf.precision import cast

INNER = 500  # evaluations of the bound for b, at most

Numbers = Float[np.ndarray, "N"]
Matrix = Float[np.ndarray, "N M"]


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


def solve(A: Matrix, y: Numbers, b: Numbers, unexplained: float = 0.0) -> Solved | None:
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
def _held_pass(
    prepared: Prepared, q: Moments, chunk: Chunk, sites: Sites, variance: Array, constant: Array
) -> Pass:
    """−½(ḡ − μ)² − ½V − ½s(1 − V) − ½d and a constant, for each row, while q(g) is held."""
    prepared, q = cast((prepared, q), chunk.X.dtype)
    real = chunk.weight > 0

    def values(features: Any, q: Moments) -> Float[Array, "B"]:
        mu, s, d = (part[:, 0] for part in projections(prepared, features, q))
        gap = sites.linear[:, 0] - mu
        return constant - 0.5 * (gap**2 + variance + s * (1 - variance) + d)

    rows, pull = jax.vjp(values, features_of(prepared, chunk), q)
    by_features, by_q = pull(real.astype(rows.dtype))
    own = (prepared.model.likelihood, prepared.model.inputs)
    nothing = jax.tree.map(jnp.zeros_like, own)
    total = jnp.sum(jnp.where(real, rows, 0.0), dtype=jnp.float64)
    strange = jnp.sum(~finite_rows(rows))
    return Pass(total, strange, *double((by_q, nothing, None, None)), by_features, sites)


class Field(NamedTuple):
    """The best q(g) under one θ, the features of all rows, and how these are in chunks."""

    solved: Solved
    A: Matrix
    counts: list[int]  # of real rows, chunk by chunk

    def kept(self, chunk_rows: int, of_rows: np.ndarray) -> Kept:
        """What belongs to rows, chunk by chunk, with zeros for those that fill up."""
        parts = np.split(of_rows, np.cumsum(self.counts)[:-1])
        return Kept(np.pad(part, (0, chunk_rows - len(part))) for part in parts)


class _HeldRule(Variational):
    """The objective of a q(g) that is held."""

    def __init__(self, variance: Kept, constant: Kept):
        self.variance, self.constant = variance, constant

    def objective(self, prepared: Prepared, q: Natural, rows: Rows, held: Kept[Sites]) -> Seen:
        """Rows less the KL, as for any rule."""
        m, kl = moments(q)
        if not np.isfinite(kl):
            return Seen(np.nan, m)

        def found(chunk: Chunk, own: Sites, variance: np.ndarray, constant: np.ndarray) -> tuple:
            one = _held_pass(prepared, m, chunk, own, variance, constant)
            return one.sums(), one.by_features

        sums, by_features = rows.sum_and_keep(found, held, self.variance, self.constant)
        if sums.not_finite:
            return Seen(np.nan, m)
        return Seen(float(sums.bound) - kl, m, sums=sums, by_features=by_features)


class MeanFieldBound:
    """The bound as a function of θ, each b the start of the next."""

    def __init__(self, rows: Rows, jitter: float):
        self.rows, self.jitter = rows, jitter
        labels = rows.keep(lambda chunk: np.asarray(chunk.y)[np.asarray(chunk.weight) > 0])
        self.y = 2.0 * np.concatenate(labels) - 1
        self.b = np.zeros(len(self.y))

    def solve(self, theta: Theta) -> Field | None:
        """The best q(g) under θ; None where numbers are none."""
        prepared, _ = prepare(*theta, self.jitter)

        def features(chunk: Chunk) -> tuple[np.ndarray, np.ndarray]:
            found = with_features(prepared, chunk).features
            real = np.asarray(chunk.weight) > 0
            A = np.asarray(found.A, np.float64).reshape(len(real), -1)  # one function
            return A[real], np.ravel(np.asarray(found.diagonal, np.float64))[real]

        parts = self.rows.keep(features)
        A = np.concatenate([own for own, _ in parts])
        diagonal = np.concatenate([own for _, own in parts])
        if not np.all(np.isfinite(A)):
            return None
        d = diagonal - np.sum(A * A, axis=1)
        solved = solve(A, self.y, self.b, float(np.sum(np.maximum(d, 0.0))))
        if solved is None:
            return None
        self.b = solved.b
        return Field(solved, A, [len(own) for own, _ in parts])

    def __call__(self, theta: Theta) -> Evaluation:
        """The bound, its gradient and p(v | g = ḡ)."""
        field = self.solve(theta)
        if field is None:
            return Evaluation(np.nan, theta, Natural.standard(1, theta.Z.shape[-2]))
        laws, length = field.solved.laws, self.rows.chunk_rows
        means = field.kept(length, laws.mean)
        ones = field.kept(length, np.ones(len(self.y)))
        sites = Kept(Sites(o[:, None], g[:, None]) for o, g in zip(ones, means, strict=True))
        rule = _HeldRule(field.kept(length, laws.variance), field.kept(length, laws.constant))
        size = theta.Z.shape[-2]
        rest = Natural(np.zeros((1, size)), np.zeros((1, size, size)))
        return dual_objective(Problem(rule, self.rows, Held(sites, rest), self.jitter), theta)

    def posterior(self, theta: Theta, plug_in: bool) -> tuple[Natural, float] | None:
        """q(v): Σ of v given g and, unless g is plugged in at its mean, ΣAᵀVAΣ of g itself.

        In natural form Λ = B(B + AᵀVA)⁻¹B with B = I + AᵀA. H15 leaves the second part out. Also
        the bound; None where numbers are none.
        """
        field = self.solve(theta)
        if field is None:
            return None
        A, laws = field.A, field.solved.laws
        B, linear = np.eye(A.shape[1]) + A.T @ A, A.T @ laws.mean
        if not plug_in:
            more = B + (A * laws.variance[:, None]).T @ A
            linear, precision = B @ np.linalg.solve(more, linear), B @ np.linalg.solve(more, B)
            B = 0.5 * (precision + precision.T)
        return Natural(linear[None], B[None]), field.solved.bound
