"""The largest noisy latent function wins, then the label may flip (L19): step, probit, logit.

g_c = f_c + ε_c, ε_c ~ N(0, a). With S the probability that g says y, the label is y with
probability 1 − δ where it does and δ/(C−1) where it does not. Two classes take one function and its
sign. The bound ℓ = S log(1−δ) + (1−S) log(δ/(C−1)) is E log p(y | g): exact for a = 0, else below
E log p(y | f) by Jensen's inequality. It is linear in S, hence not concave: rows on the wrong side
have sites of negative precision. The scale a cannot be learned (the bound grows as a → 0); δ can.
"""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import log_ndtr
from jax.scipy.stats import norm
from jaxtyping import Array, Float

from gpclf.likelihoods.base import Label, Latent, Likelihood, RowBound, Scalar, sign
from gpclf.likelihoods.logit import Logit
from gpclf.likelihoods.power import Power
from gpclf.likelihoods.softmax import Softmax
from gpclf.quadrature.winner import normal_cdf, win_probabilities, win_probability


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
            return normal_cdf(sign(y, mu.dtype) * mu[0] / jnp.sqrt(variance[0]))
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
            wins = normal_cdf(jnp.stack([-z, z]))
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
