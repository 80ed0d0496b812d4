"""The Gaussian q(v) over whitened inducing variables v ~ N(0, I), in its two forms.

natural: h = S⁻¹m, Λ = S⁻¹. Sites add up here, and the closed-form step is a straight line.
moment:  m and S − I, so that ν = k(x,x) + aᵀ(S − I)a takes one quadratic form.

There is one of each for every latent function, stacked. Or all functions have one Λ, and so one S,
in common: then its first axis is 1. With C functions work on rows is then nearly C times cheaper.
"""

from typing import NamedTuple

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float

from gpclf.linalg import inverse, plain_cholesky


class Moments(eqx.Module):
    """N(m, S), S held as S − I: what the data changed about the prior.

    Where m has more entries than S has rows, the others have the prior's variance: S there is I.
    """

    mean: Float[Array | np.ndarray, "*C K"]
    excess: Float[Array | np.ndarray, "*G M M"]  # G: C, or 1


class Natural(NamedTuple):
    """The Gaussians proportional to exp(hᵀv − ½vᵀΛv)."""

    linear: Float[Array | np.ndarray, "C M"]
    precision: Float[Array | np.ndarray, "G M M"]  # G: C, or 1

    @classmethod
    def standard(cls, n_latent: int, size: int, *, common: bool = False) -> "Natural":
        """N(0, I) for each of `n_latent` functions: the whitened prior."""
        own = np.stack([np.eye(size)] * (1 if common else n_latent))
        return cls(np.zeros((n_latent, size)), own)

    def prior(self, size: int | None = None) -> "Natural":
        """N(0, I) in the same form, or of that with other points."""
        n_latent, own = self.linear.shape
        return Natural.standard(n_latent, own if size is None else size, common=self.common)

    @property
    def common(self) -> bool:
        """Whether all functions have one Λ."""
        return len(self.precision) < len(self.linear)

    def in_common(self) -> "Natural":
        """The prior, with one Λ for all functions."""
        return Natural.standard(*self.linear.shape, common=True)

    def each_its_own(self) -> "Natural":
        """The same Gaussians, each with a Λ of its own."""
        count = len(self.linear) // len(self.precision)
        return Natural(self.linear, np.repeat(self.precision, count, axis=0))

    def towards(self, target: "Natural", rate: float) -> "Natural":
        """The point at `rate` on the straight line from here to `target`."""
        return Natural(
            (1 - rate) * self.linear + rate * target.linear,
            (1 - rate) * self.precision + rate * target.precision,
        )


def moments(q: Natural) -> tuple[Moments, float]:
    """The moments, and the sum over functions of KL(q ‖ N(0, I)) = ½(tr S + mᵀm − M + log det Λ).

    NaN where a Λ is not positive definite: a failure is a value the caller looks at.
    """
    mean, excess, kl = np.empty_like(q.linear), np.empty_like(q.precision), 0.0
    each = len(mean) // len(excess)  # functions that have a Λ in common
    for c, precision in enumerate(q.precision):
        factor = plain_cholesky(precision)
        if factor is None:
            return Moments(np.full_like(mean, np.nan), np.full_like(excess, np.nan)), np.nan
        covariance = inverse(factor)
        own = slice(c * each, (c + 1) * each)
        mean[own] = q.linear[own] @ covariance
        excess[c] = covariance
        excess[c][np.diag_indices(len(covariance))] -= 1.0
        log_det = 2 * np.sum(np.log(np.diagonal(factor)))
        kl += 0.5 * (each * (np.trace(excess[c]) + log_det) + np.sum(mean[own] ** 2))
    return Moments(mean, excess), float(kl)


def divergence(q: Moments) -> float:
    """KL(q ‖ N(0, I)) of all functions: ½ Σ (tr(S − I) + mᵀm − log det S)."""
    eye = np.eye(q.excess.shape[-1])
    of_S = [np.trace(e) - np.linalg.slogdet(eye + e)[1] for e in np.asarray(q.excess)]
    each = len(q.mean) // len(q.excess)
    return float(0.5 * (each * np.sum(of_S) + np.sum(np.asarray(q.mean) ** 2)))


def elbo_pullback(q: Natural, m: Moments, by: Moments) -> Natural:
    """The gradient by (h, Λ) of F(m, S) − KL, from the gradient `by` of F by (m, S).

    ∂KL/∂m = m and ∂KL/∂S = ½(I − Λ); with dm = S dh − S dΛ m and dS = −S dΛ S, a gradient (g, G)
    by (m, S) becomes Sg by h and −S G S − ½(Sg mᵀ + m(Sg)ᵀ) by Λ.
    """
    eye = np.eye(q.linear.shape[1])
    by_linear, by_precision = np.empty_like(q.linear), np.empty_like(q.precision)
    each = len(q.linear) // len(q.precision)  # functions that have a Λ in common
    for c, precision in enumerate(q.precision):
        own = slice(c * each, (c + 1) * each)
        S = eye + m.excess[c]
        G = 0.5 * (by.excess[c] + by.excess[c].T) - 0.5 * each * (eye - precision)
        pulled = (by.mean[own] - m.mean[own]) @ S
        outer = pulled.T @ m.mean[own]
        by_linear[own] = pulled
        by_precision[c] = -S @ G @ S - 0.5 * (outer + outer.T)
    return Natural(by_linear, by_precision)
