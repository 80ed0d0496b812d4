"""Any number of classes, p(y | f) = σ(f_y)/Σσ(f_c) (G19), with every site in closed form.

G19 augments three times: 1/Σσ = ∫ exp(−λΣσ) dλ, each exp(−λσ(f_c)) as a Poisson mixture of powers
of σ(−f_c), each power by a Pólya-Gamma variable. With c_c² = μ_c² + ν_c and
p_c = exp(−μ_c/2)/(2cosh(c_c/2)), what is left is a sum over classes, Σ p_c, inside one function.
"""

from abc import abstractmethod

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.special import digamma, gammaln
from jaxtyping import Array, Float

from gpclf.likelihoods.base import Label, Latent, Likelihood, Scalar, Sites
from gpclf.likelihoods.logit import expected_log_sigmoid, log_expected_sigmoid
from gpclf.likelihoods.logit_pg import log_two_cosh_half, pg_mean
from gpclf.quadrature.gumbel_race import log_expected_logistic_softmax

Numbers = Float[Array, "*s"]


def minus_log_p(mu: Numbers, nu: Numbers) -> Numbers:
    """−log p = (c + μ)/2 + log(1 + e^−c), without loss where μ is far below 0 and p close to 1."""
    c_squared = mu**2 + nu
    c = jnp.sqrt(jnp.where(c_squared > 1e-6, c_squared, 1.0))
    excess = jnp.where(mu < 0, nu / (c - jnp.minimum(mu, 0.0)), c + mu)  # c + μ
    large = 0.5 * excess + jnp.log1p(jnp.exp(-c))
    return jnp.where(c_squared > 1e-6, large, 0.5 * mu + log_two_cosh_half(c_squared))


def log_rest(mu: Numbers, nu: Numbers) -> Numbers:
    """log(1 − p_c), which is log σ(μ_c) at ν = 0."""
    x = jnp.maximum(minus_log_p(mu, nu), jnp.finfo(mu.dtype).tiny)
    small = x < 0.7
    near = jnp.log(-jnp.expm1(-jnp.where(small, x, 0.7)))
    return jnp.where(small, near, jnp.log1p(-jnp.exp(-jnp.where(small, 0.7, x))))


def taylor(mu: Latent, nu: Latent) -> tuple[Latent, Latent]:
    """Mean and variance of the class probabilities to second order in the latent spread (G19).

    With d = σ(1−σ), T = Σσ: ∂p_k/∂f_c = ([c=k]T − σ_k)d_c/T², and ∂²p_k/∂f_c² is
    −σ_k d_c[(1−2σ_c)T − 2d_c]/T³ for c ≠ k and (T−σ_k)d_k[(1−2σ_k)T − 2d_k]/T³ for c = k (G19 has
    other second derivatives; finite differences side with these).
    """
    s = jax.nn.sigmoid(mu)
    d, total = s * jax.nn.sigmoid(-mu), jnp.sum(s)
    own = jnp.eye(mu.shape[0], dtype=mu.dtype)
    first = (own * total - s[:, None]) * d / total**2
    second = (own * total - s[:, None]) * d * ((1 - 2 * s) * total - 2 * d) / total**3
    return s / total + 0.5 * second @ nu, first**2 @ nu


class LogisticSoftmaxFamily(Likelihood):
    """σ(f_y)/Σσ(f_c); its subclasses differ in what they do with Σ p_c.

    `integration`: "exact" class probabilities by quadrature, or "taylor", their second-order
    expansion: faster, and off where the latent variance is large (negative values are set to the
    smallest number, and the sum to one).
    """

    integration: str = eqx.field(static=True, default="exact")

    def __check_init__(self):
        if self.integration not in ("exact", "taylor"):
            raise ValueError(f'integration must be "exact" or "taylor", got {self.integration!r}.')

    @abstractmethod
    def log_slope(self, log_total: Numbers, n_classes: int) -> Numbers:
        """log of the derivative of the bound by Σ p_c, from log Σ(1 − p_c)."""

    @abstractmethod
    def rivals(self, log_total: Scalar, n_classes: int) -> Scalar:
        """The part of the bound that depends on the classes only through Σ(1 − p_c)."""

    def n_latent(self, n_classes: int) -> int:
        """One function per class."""
        return n_classes

    def log_prob(self, y: Label, f: Latent) -> Scalar:
        """log σ(f_y) − log Σ σ(f_c)."""
        return jax.nn.log_softmax(jax.nn.log_sigmoid(f))[y]

    def bound(self, y: Label, mu: Latent, nu: Latent) -> Scalar:
        """μ_y/2 − log 2cosh(c_y/2), and the rivals' part."""
        log_total = jax.nn.logsumexp(log_rest(mu, nu))
        return mu[y] - minus_log_p(mu[y], nu[y]) + self.rivals(log_total, mu.shape[0])

    def sites(self, y: Label, mu: Latent, nu: Latent) -> Sites:
        """τ_c = ([c=y] + γ_c) tanh(c_c/2)/(2c_c), λ_c = ([c=y] − γ_c)/2, γ_c = slope · p_c."""
        log_total = jax.nn.logsumexp(log_rest(mu, nu))
        gamma = jnp.exp(self.log_slope(log_total, mu.shape[0]) - minus_log_p(mu, nu))
        own = jax.nn.one_hot(y, mu.shape[0], dtype=mu.dtype)
        return Sites((own + gamma) * pg_mean(mu**2 + nu), 0.5 * (own - gamma))

    def log_probabilities(self, mu: Latent, nu: Latent) -> Float[Array, "K"]:
        """log ∫ σ(f_k)/Σσ(f_c), or its expansion."""
        if self.integration == "exact":
            return log_expected_logistic_softmax(mu, nu)
        p = jnp.log(jnp.maximum(taylor(mu, nu)[0], jnp.finfo(mu.dtype).tiny))
        return jax.nn.log_softmax(p)


class LogisticSoftmax(LogisticSoftmaxFamily):
    """The logistic-softmax under the tightest bound here, or under G19's with λ integrated out.

    `bound_by` "expectation": E log σ(f_y) − log Σ E σ(f_c), Jensen's inequality.
    "augmentation": the closed form −log(C − Σ p_c), every full step coordinate ascent. As p_c is at
    most E σ(−f_c), and its Pólya-Gamma term at most E log σ(f_y), the first is never below the
    second; both are exact at ν = 0. Steps on drawn classes take the second.
    """

    bound_by: str = eqx.field(static=True, default="expectation")

    def __check_init__(self):
        if self.bound_by not in ("expectation", "augmentation"):
            raise ValueError(
                f'bound_by must be "expectation" or "augmentation", got {self.bound_by!r}.'
            )

    def bound(self, y: Label, mu: Latent, nu: Latent) -> Scalar:
        """E log σ(f_y) − log Σ E σ(f_c), or the closed form."""
        if self.bound_by == "augmentation":
            return super().bound(y, mu, nu)
        rivals = jax.nn.logsumexp(jax.vmap(log_expected_sigmoid)(mu, nu))
        return expected_log_sigmoid(mu[y], nu[y]) - rivals

    def sites(self, y: Label, mu: Latent, nu: Latent) -> Sites:
        """The gradient, or the closed form."""
        if self.bound_by == "augmentation":
            return super().sites(y, mu, nu)
        return Likelihood.sites(self, y, mu, nu)

    def rivals(self, log_total: Scalar, n_classes: int) -> Scalar:
        """−log(C − Σ p_c)."""
        return -log_total

    def log_slope(self, log_total: Numbers, n_classes: int) -> Numbers:
        """γ_c = p_c/(C − Σ p_c)."""
        return -log_total


class LogisticSoftmaxAugmented(LogisticSoftmaxFamily):
    """G19's own bound: λ keeps a Gamma(α, C) of its own, and costs 0.313 nats at f = 0.

    γ_c = e^ψ(α) p_c/C and α = 1 + Σγ_c hold together: one unknown, α, found by Newton's method in
    place of the paper's alternation (which hardly moves where Σ p_c is close to C).
    """

    def rivals(self, log_total: Scalar, n_classes: int) -> Scalar:
        """ln Γ(α) + (1−α)ψ(α) + Σγ_c − log C at the best α (held: envelope theorem)."""
        share = jnp.exp(log_total) / n_classes  # 1 − Σ p_c/C
        alpha = _alpha(jax.lax.stop_gradient(share))
        gammas = jnp.exp(digamma(alpha)) * (1 - share)  # α − 1, and what carries the gradient
        value = _entropy(alpha) - jnp.log(jnp.asarray(n_classes, share.dtype))
        return value + gammas - jax.lax.stop_gradient(gammas)

    def log_slope(self, log_total: Numbers, n_classes: int) -> Numbers:
        """γ_c = e^ψ(α) p_c/C."""
        share = jnp.exp(log_total) / n_classes
        return digamma(_alpha(share)) - jnp.log(jnp.asarray(n_classes, share.dtype))


def _alpha(share: Numbers) -> Numbers:
    """The root of α = 1 + (1 − share) e^ψ(α), where e^ψ(α) is close to α − ½ + 1/(24α).

    With that sum for e^ψ(α) the root is plain, and exact to rounding where α is large. Else it
    is the start of Newton's method, the derivative of the sum its slope.
    """
    share = jnp.maximum(share, 1e3 * jnp.finfo(share.dtype).tiny)
    large = 0.5 * (1 + share) / share
    large = large + (1 - share) / (24 * share * large)
    alpha = start = jnp.minimum(large, 1e3)
    for _ in range(6):
        gap = alpha - 1 - (1 - share) * jnp.exp(digamma(alpha))
        slope = 1 - (1 - share) * (1 - 1 / (24 * start**2))
        alpha = jnp.maximum(alpha - gap / slope, 1.0)
    return jnp.where(large < 500.0, alpha, large)


def _entropy(alpha: Scalar) -> Scalar:
    """ln Γ(α) + (1−α)ψ(α) + α − 1; by its series where the terms would cancel."""
    small = alpha < 200.0
    a = jnp.where(small, alpha, 1.0)
    direct = gammaln(a) + (1 - a) * digamma(a) + a - 1
    series = 0.5 * (jnp.log(2 * jnp.pi * alpha) - 1) - 1 / (3 * alpha) - 1 / (12 * alpha**2)
    return jnp.where(small, direct, series)
