"""The largest noisy latent function wins, then the label may flip (L19): step, probit, logit.

g_c = f_c + ε_c, ε_c ~ N(0, a). With S the probability that g says y, the label is y with
probability 1 − δ where it does and δ/(C−1) where it does not. Two classes take one function and its
sign. The bound ℓ = S log(1−δ) + (1−S) log(δ/(C−1)) is E log p(y | g): exact for a = 0, else below
E log p(y | f) by Jensen's inequality. It is linear in S, hence not concave: rows on the wrong side
have sites of negative precision. The scale a cannot be learned (the bound grows as a → 0); δ can.
"""

import math
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import erfc, log_ndtr
from jax.scipy.stats import norm
from jaxtyping import Array, Float, Int

from gpclf.likelihoods.base import Label, Latent, Likelihood, RowBound, Scalar, sign
from gpclf.likelihoods.logit import Logit
from gpclf.likelihoods.power import Power
from gpclf.likelihoods.rows import rows_last
from gpclf.likelihoods.softmax import Softmax
from gpclf.quadrature import REACH, panels

# A class needs up to four panels of its own, where its scale is unlike the others'.
PANELS_FEW, PANELS_PER_CLASS, PANELS_MANY = 8, 5, 48


Rows = Float[Array, "C *B"]  # functions of one row, or of many
Each = Float[Array, "*B"]

# (1 − Φ)/φ at z = (1/t − 1)/MILLS_SCALE is t Σ MILLS tᵏ, to a part in 2·10⁷ for z up to 6.
MILLS_SCALE = 0.4
MILLS = (
    0.40032312, 0.39392223, 0.38424287, -0.00219403, 0.58928151, -0.90361416, 0.48767479,
    -0.09632226,
)  # fmt: skip


def _cdf(z: Float[Array, "*s"]) -> Float[Array, "*s"]:
    """Φ, with its left tail to relative precision."""
    return 0.5 * erfc(-z * math.sqrt(0.5))


def cdf_and_density(z: Float[Array, "*s"]) -> tuple[Float[Array, "*s"], Float[Array, "*s"]]:
    """Φ and φ for z ≥ −6; in single precision both with one exponential."""
    density = jnp.exp(-0.5 * z**2) / math.sqrt(2 * math.pi)
    if z.dtype != jnp.float32:
        return _cdf(z), density
    t = 1 / (1 + MILLS_SCALE * jnp.abs(z))
    ratio = jnp.full_like(t, MILLS[-1])
    for coefficient in MILLS[-2::-1]:
        ratio = ratio * t + coefficient
    tail = density * ratio * t
    return jnp.where(z < 0, tail, 1 - tail), density


def _scale(mean: Rows, variance: Rows) -> Rows:
    """Standard deviations, not below what the means resolve."""
    finest = 8 * jnp.finfo(mean.dtype).eps * (jnp.max(mean, axis=0) - jnp.min(mean, axis=0))
    return jnp.maximum(jnp.sqrt(variance), finest)


def _most(n_classes: int) -> int:
    return min(PANELS_FEW + PANELS_PER_CLASS * n_classes, PANELS_MANY)


def _over_nodes(
    at: Callable[[Each, Each], Any], zero: Any
) -> Callable[[Float[Array, "nodes *B"], Float[Array, "nodes *B"]], Any]:
    """Σ at(g, weight) over the nodes of a panel, one after the other."""

    def integrals(g: Float[Array, "nodes *B"], weights: Float[Array, "nodes *B"]) -> Any:
        def add(k, total):
            return jax.tree.map(jnp.add, total, at(g[k], weights[k]))

        return jax.lax.fori_loop(0, len(g), add, zero)

    return integrals


@rows_last
def _win(y: Int[Array, "*B"], mean: Rows, variance: Rows) -> tuple[Each, Rows, Rows]:
    """P(g_y is the largest) for g_c ~ N(mean_c, variance_c), its gradients by mean and variance.

    S = ∫ φ(z_y)/s_y Π_{c≠y} Φ(z_c) dg, z_c = (g − mean_c)/s_c. Below `low` a class exceeds g almost
    surely, so no Φ here is below Φ(−5.5): no logarithms are needed.
    """
    mean = mean - jnp.max(mean, axis=0)
    sd = _scale(mean, variance)
    own = jnp.arange(len(mean)).reshape(-1, *(1,) * y.ndim) == y
    own_mean, own_sd = (jnp.sum(jnp.where(own, part, 0.0), axis=0) for part in (mean, sd))
    low, high = jnp.max(mean - REACH * sd, axis=0), own_mean + REACH * own_sd
    inverse = 1 / sd

    def at(g: Each, weight: Each) -> tuple[Each, Rows, Rows]:
        z = (g - mean) * inverse
        cdf, density = cdf_and_density(z)
        share = weight / own_sd * jnp.prod(jnp.where(own, density, cdf), axis=0)
        hazard = jnp.where(own, 0.0, density / cdf * inverse)
        rate = jnp.sum(hazard, axis=0)  # (log ΠΦ)′: by parts, what moving y's own Gaussian does
        by_mean = share * jnp.where(own, rate, -hazard)
        return share, by_mean, by_mean * z

    zero = (jnp.zeros_like(low), jnp.zeros_like(mean), jnp.zeros_like(mean))
    integrals = _over_nodes(at, zero)
    win, by_mean, by_scale = panels(integrals, mean, sd, low, high, zero, _most(len(mean)))
    return win, by_mean, 0.5 * inverse * by_scale


@jax.custom_jvp
def win_probability(y: Label, mean: Latent, variance: Latent) -> Scalar:
    """P(g_y is the largest of all), g_c ~ N(mean_c, variance_c) independent."""
    return _win(y, mean, variance)[0]


@win_probability.defjvp
def _win_jvp(primals, tangents):
    value, by_mean, by_variance = _win(*primals)
    return value, by_mean @ tangents[1] + by_variance @ tangents[2]


@rows_last
def win_probabilities(mean: Rows, variance: Rows) -> Rows:
    """P(g_k is the largest) for every k at once; they sum to one."""
    mean = mean - jnp.max(mean, axis=0)
    sd = _scale(mean, variance)
    inverse = 1 / sd

    def at(g: Each, weight: Each) -> Rows:
        cdf, density = cdf_and_density((g - mean) * inverse)
        return weight * jnp.prod(cdf, axis=0) * density / cdf * inverse

    low, high = jnp.max(mean - REACH * sd, axis=0), jnp.max(mean + REACH * sd, axis=0)
    zero = jnp.zeros_like(mean)
    wins = panels(_over_nodes(at, zero), mean, sd, low, high, zero, _most(len(mean)))
    return wins / jnp.sum(wins, axis=0)


class _AdditiveNoise(Likelihood):
    """Noise of variance `noise` on every latent function, labels flipped with probability δ."""

    log_odds: Float[Array | np.ndarray, ""] | None  # log δ/(1−δ) where δ is learned
    fixed_log_odds: float = eqx.field(static=True)

    noise = 0.0  # of variance a

    def __init__(self, delta: float = 0.01, learn: bool = True):
        if not 0 < delta < 0.5:
            raise ValueError(f"delta must be between 0 and ½, got {delta!r}.")
        log_odds = math.log(delta / (1 - delta))
        self.log_odds = np.asarray(log_odds) if learn else None
        self.fixed_log_odds = log_odds

    @property
    def delta(self) -> float:
        """The probability that a label is flipped."""
        odds = math.exp(self.fixed_log_odds if self.log_odds is None else float(self.log_odds))
        return odds / (1 + odds)

    def _log_odds(self, dtype) -> Scalar:
        return jnp.asarray(self.fixed_log_odds if self.log_odds is None else self.log_odds, dtype)

    def _logs(self, n_latent: int, dtype) -> tuple[Scalar, Scalar]:
        """log(1−δ) and log(δ/(C−1))."""
        odds = self._log_odds(dtype)
        others = max(n_latent - 1, 1)
        return jax.nn.log_sigmoid(-odds), jax.nn.log_sigmoid(odds) - math.log(others)

    def n_latent(self, n_classes: int) -> int:
        """One function for two classes, else one per class."""
        return 1 if n_classes == 2 else n_classes

    def easier(self, n_latent: int) -> RowBound:
        """The softmax: far from the boundary this bound is flat, and what is lost there is lost."""
        return Logit() if n_latent == 1 else Softmax()

    def _win(self, y: Label, mu: Latent, nu: Latent) -> Scalar:
        variance = nu + self.noise
        if mu.shape[0] == 1:
            return _cdf(sign(y, mu.dtype) * mu[0] / jnp.sqrt(variance[0]))
        return win_probability(y, mu, variance)

    def log_prob(self, y: Label, f: Latent) -> Scalar:
        """log((1−δ)S + δ/(C−1)·(1−S)) at ν = 0."""
        tiny = jnp.full_like(f, jnp.finfo(f.dtype).eps ** 2)
        right, wrong = self._logs(f.shape[0], f.dtype)
        win = self._win(y, f, tiny)
        return jnp.log(jnp.exp(right) * win + jnp.exp(wrong) * (1 - win))

    def bound(self, y: Label, mu: Latent, nu: Latent) -> Scalar:
        """S log(1−δ) + (1−S) log(δ/(C−1))."""
        right, wrong = self._logs(mu.shape[0], mu.dtype)
        return wrong + (right - wrong) * self._win(y, mu, nu)

    def log_probabilities(self, mu: Latent, nu: Latent) -> Float[Array, "K"]:
        """log((1−δ)S_k + δ/(C−1)·(1−S_k))."""
        variance = nu + self.noise
        if mu.shape[0] == 1:
            z = mu[0] / jnp.sqrt(variance[0])
            wins = _cdf(jnp.stack([-z, z]))
        else:
            wins = win_probabilities(mu, variance)
        right, wrong = self._logs(mu.shape[0], mu.dtype)
        return jnp.log(jnp.exp(right) * wins + jnp.exp(wrong) * (1 - wins))

    def log_evidence(self, y: Label, mu: Latent, nu: Latent, alpha: Power) -> Scalar:
        """log((1−δ)^α S + (δ/(C−1))^α (1−S)): p(y | g) takes two values.

        As α → 0, 1/α of it becomes the bound; at α = 1 it is log E p(y | f), with noise as well.
        """
        right, wrong = self._logs(mu.shape[0], mu.dtype)
        win = self._win(y, mu, nu)
        return alpha * wrong + jnp.log1p(jnp.expm1(alpha * (right - wrong)) * win)


class Step(_AdditiveNoise):
    """No noise but flipped labels, a = 0 (L19's GPCstep): the labels are right or mistaken."""


class NoisyProbit(_AdditiveNoise):
    """Gaussian noise of variance a = 1 (L19's GPCprobit)."""

    noise = 1.0


class NoisyLogit(_AdditiveNoise):
    """Gaussian noise of variance a = 2.897, close to a logistic variable (L19's GPClogit)."""

    noise = 2.897


class RobustMax(_AdditiveNoise):
    """The largest function wins but for a share ε of the rows (V20 eq. 2): a = 0, C functions.

    `pairs`: power-EP takes Π_{c≠y} Φ((μ_y − μ_c)/√(ν_y + ν_c)) in the place of E p(y | f), as the
    EP columns of L19 and G19 do: every rival on its own, no integral, and no mistaken labels.
    """

    pairs: bool = eqx.field(static=True)

    def __init__(self, epsilon: float = 1e-3, learn: bool = False, pairs: bool = False):
        super().__init__(epsilon, learn)
        self.pairs = pairs

    def n_latent(self, n_classes: int) -> int:
        """One function per class."""
        return n_classes

    def log_evidence(self, y: Label, mu: Latent, nu: Latent, alpha: Power) -> Scalar:
        """That of the winner, or Σ log Φ over its rivals: 0 and 1 are powers of themselves."""
        if not self.pairs:
            return super().log_evidence(y, mu, nu, alpha)
        return jnp.sum(_duels(y, mu, nu)[0])

    def evidence_slopes(
        self, y: Label, mu: Latent, nu: Latent, alpha: Power
    ) -> tuple[Scalar, Latent, Latent]:
        """Of pairs, a product of expectations and not one of them: each has its own h."""
        if not self.pairs:
            return super().evidence_slopes(y, mu, nu, alpha)
        logs, slope, bend = _duels(y, mu, nu)
        own = jnp.arange(mu.shape[0]) == y
        g = jnp.where(own, jnp.sum(slope), -slope)
        return jnp.sum(logs), g, jnp.where(own, jnp.sum(bend), bend)


def _duels(y: Label, mu: Latent, nu: Latent) -> tuple[Latent, Latent, Latent]:
    """log Φ(z) of y against every rival, z = (μ_y − μ_c)/√(ν_y + ν_c), 0 for y itself; and its
    first and second derivative by μ_y."""
    own = jnp.arange(mu.shape[0]) == y
    sd = jnp.sqrt(nu[y] + nu)
    z = (mu[y] - mu) / sd
    logs = log_ndtr(z)
    hazard = jnp.exp(norm.logpdf(z) - logs)
    bend = -hazard * jnp.maximum(hazard + z, 0.0) / sd**2
    logs, slope, bend = (jnp.where(own, 0.0, part) for part in (logs, hazard / sd, bend))
    return logs, slope, bend
