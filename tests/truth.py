"""Integrals the laws compare with: plain, dense, slow, and written without the library's code."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.special import log_expit, log_ndtr, ndtr

EULER = 0.5772156649015329
LEGENDRE = np.polynomial.legendre.leggauss(12)  # within 2e-10 of 24 nodes, on all that is drawn


def composite(edges):
    """Nodes and weights of Gauss-Legendre rules between the sorted edges."""
    edges = np.unique(edges)
    middle, half = (edges[1:] + edges[:-1]) / 2, np.diff(edges) / 2
    x, w = LEGENDRE
    return (middle[:, None] + half[:, None] * x).ravel(), (half[:, None] * w).ravel()


def normal(f, mean, sd):
    return np.exp(-0.5 * ((f - mean) / sd) ** 2) / (sd * np.sqrt(2 * np.pi))


def expectation(g, mean, sd, bends=(-40.0, -10.0, -5.0, -2.0, 0.0, 2.0, 5.0, 10.0, 40.0)):
    """E g(f), f ~ N(mean, sd²), for g that bends near 0."""
    low, high = mean - 10 * sd, mean + 10 * sd
    f, w = composite(np.concatenate([np.clip(bends, low, high), np.linspace(low, high, 11)]))
    weight = w * normal(f, mean, sd)
    return float(weight @ g(f)) / float(weight.sum())


def win(y, mean, sd):
    """P(g_y is the largest), g_c ~ N(mean_c, sd_c²)."""
    steps = (np.linspace(-9, 9, 19)[:, None] * sd + mean).ravel()
    g, w = composite(np.clip(steps, mean[y] - 9 * sd[y], mean[y] + 9 * sd[y]))
    z = (g[:, None] - mean) / sd
    logs = np.sum(np.delete(log_ndtr(z), y, axis=1), axis=1)
    return float(w @ (np.exp(logs) * normal(g, mean[y], sd[y])))


class Race:
    """h(f_c) + Gumbel noise: the law of the largest, hence softmax(h(f)) and log Σ exp h(f)."""

    def __init__(self, kind, mean, sd):
        self.h = {"softmax": lambda f: f, "logistic-softmax": log_expit}[kind]
        self.top = np.inf if kind == "softmax" else 0.0
        self.mean, self.sd = mean, sd
        starts, ends = self.h(mean - 10 * sd) - 4, self.h(mean + 10 * sd) + 40
        self.low, self.high = starts.max(), ends.max()
        edges = [np.linspace(starts[c], ends[c], 25) for c in range(len(mean))]
        edges += [self.h(m) + np.linspace(-4, 16, 21) for m in mean]
        edges += [np.linspace(-8, 16, 25)] if kind != "softmax" else []
        edges = np.clip(np.concatenate(edges), self.low, self.high)
        self.t, self.weight = composite(edges)
        laws = [self._law(m, s) for m, s in zip(mean, sd, strict=True)]
        self.psi, self.density = (np.stack(part) for part in zip(*laws, strict=True))

    def _law(self, mean, sd):
        """ψ and ψ′ of one class at every t."""
        t = self.t[:, None]
        if sd < 1:
            z, w = composite(np.linspace(-9, 9, 7))  # in units of sd: 256 + 1e-6 z would round
            f, w = mean + sd * z, w * normal(z, 0.0, 1.0)
            excess = np.exp(np.minimum(self.h(f) - t, 50.0))
            below = np.exp(-excess) * w
            return below.sum(1), (excess * below).sum(1)
        # by parts: the noise is the narrow one; it passes t with h(f) from t − 40 to t + 5
        saturates = self.top == 0
        low = np.minimum(self.t, self.top) - 40
        high = np.where(self.t < -5, self.t + 5, 40.0) if saturates else self.t + 5
        places, weights = composite(np.linspace(0, 1, 24))
        x = low[:, None] + (high - low)[:, None] * places
        w = (high - low)[:, None] * weights
        excess = np.exp(np.minimum(self.h(x) - t, 50.0))
        pdf = excess * np.exp(-excess)
        slope = np.exp(log_expit(-x)) if saturates else 1.0
        psi = (w * pdf * slope * ndtr((x - mean) / sd)).sum(1)
        density = (w * pdf * normal(x, mean, sd)).sum(1)
        if saturates:
            at_top = np.exp(np.minimum(-self.t, 50.0))
            psi = psi + np.exp(-at_top)
            density = density + at_top * np.exp(-at_top) * ndtr((mean - high) / sd)
        return psi, density

    def probabilities(self):
        """E softmax(h(f))."""
        logs = np.log(np.maximum(self.psi, 1e-300))
        shares = self.density * np.exp(logs.sum(0) - logs)
        return shares @ self.weight

    def expected_log_sum(self):
        """E log Σ exp h(f): the mean of the largest, less the mean of the noise."""
        largest = np.prod(self.psi, axis=0)
        return self.high - self.weight @ largest - EULER


class OneFunction(NamedTuple):
    """Two classes and one function: p(y | f) = cdf(±f)."""

    log_cdf: Callable
    cdf: Callable

    def expected_log_prob(self, y, mu, nu):
        """E log p(y | f)."""
        return expectation(lambda f: self.log_cdf((2 * y - 1) * f), mu[0], np.sqrt(nu[0]))

    def probabilities(self, mu, nu):
        """E p(y | f) of both."""
        one = expectation(self.cdf, mu[0], np.sqrt(nu[0]))
        return np.array([1 - one, one])


class Winner(NamedTuple):
    """The largest of f + noise wins, and is the label but for a share δ of flips."""

    likelihood: Any

    def _wins(self, mu, nu):
        sd = np.sqrt(nu + self.likelihood.noise)
        if len(mu) == 1:
            return ndtr(np.array([-1, 1]) * mu / sd)
        return np.array([win(k, mu, sd) for k in range(len(mu))])

    def _flips(self, n_classes):
        """1 − δ, and δ/(C − 1)."""
        delta = float(self.likelihood.delta)
        return 1 - delta, delta / (n_classes - 1)

    def expected_log_prob(self, y, mu, nu):
        """E log p(y | f + noise)."""
        wins = self._wins(mu, nu)
        right, wrong = np.log(self._flips(len(wins)))
        return wins[y] * right + (1 - wins[y]) * wrong

    def probabilities(self, mu, nu):
        """E p(y | f) of all."""
        wins = self._wins(mu, nu)
        right, wrong = self._flips(len(wins))
        return right * wins + wrong * (1 - wins)


class Softened(NamedTuple):
    """p(y | f) ∝ exp h(f_y)."""

    kind: str
    h: Callable

    def expected_log_prob(self, y, mu, nu):
        """E log p(y | f)."""
        own = expectation(self.h, mu[y], np.sqrt(nu[y]))
        return own - Race(self.kind, mu, np.sqrt(nu)).expected_log_sum()

    def probabilities(self, mu, nu):
        """E p(y | f) of all."""
        return Race(self.kind, mu, np.sqrt(nu)).probabilities()


SOFTMAX = Softened("softmax", lambda f: f)
LOGISTIC_SOFTMAX = Softened("logistic-softmax", log_expit)
