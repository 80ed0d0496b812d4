"""Rows that arrive in pieces: each is seen once, and what it told stays as a Gaussian.

The posterior of the rows before is the prior of a piece: q ∝ q_before · Π sites of the new rows,
found by natural steps. Inducing points that are added later come last in the Cholesky factor that
whitens: the coordinates of the earlier ones, and what is known of them, stay as they are.
"""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from gpclf.data import Rows
from gpclf.gaussian import Natural, moments
from gpclf.inference.natural import any_negative, stochastic_step
from gpclf.inference.passes import step_pass, with_kept_features
from gpclf.model import Prepared, Theta, prepare

STEPS = 20
SMALLEST_RATE = 2.0**-6
GROWTH = 1.5  # points are added when the rule for their number asks for so many times as many
KNOWN = 0.01  # a row with less than this share of its variance left needs no point


def divergence(q: Natural, before: Natural) -> float:
    """KL(q ‖ before), summed over functions; NaN where one of them is no Gaussian."""
    total = 0.0
    m, _ = moments(q)
    m_before, _ = moments(before)
    for c in range(len(q.linear)):
        (own_sign, own), (sign, other) = (np.linalg.slogdet(p.precision[c]) for p in (q, before))
        if min(own_sign, sign) <= 0:
            return np.nan
        size, gap = len(q.linear[c]), m.mean[c] - m_before.mean[c]
        precision = before.precision[c]
        trace = np.trace(precision) + np.sum(precision * m.excess[c])
        total += 0.5 * (trace - size + gap @ precision @ gap + own - other)
    return float(total)


def absorb(
    prepared: Prepared, before: Natural, rows: Rows, tolerance: float
) -> tuple[Natural, float]:
    """`before` and the rows as one Gaussian; the bound of log p(rows | before)."""
    rows = with_kept_features(prepared, rows)

    def look(q: Natural) -> tuple[float, Natural, bool]:
        m, _ = moments(q)
        sums, sites = rows.sum_and_keep(lambda chunk: step_pass(prepared, m, chunk))
        target = Natural(before.linear + sums.linear, before.precision + sums.precision)
        return float(sums.bound) - divergence(q, before), target, any_negative(*sites)

    q, rate = before, 1.0
    bound, target, negative = look(q)
    for _ in range(STEPS):
        ahead = stochastic_step(q, target, rate, negative)
        there, next_target, next_negative = look(ahead)
        if not there >= bound:  # also where it is not a number
            rate /= 2
            if rate < SMALLEST_RATE:
                break
            continue
        gain, q = there - bound, ahead
        bound, target, negative = there, next_target, next_negative
        if gain < tolerance:
            break
    return q, bound


def new_points(
    prepared: Prepared, X: Float[np.ndarray, "N D"], count: int, known: float = KNOWN
) -> Float[np.ndarray, "K D"]:
    """At most `count` rows of X about which the inducing points say least, one after the other.

    Each time the row with the largest variance given all points so far: a pivoted Cholesky
    factorisation of what is left. None with less than the share `known` of its variance left.
    """
    kernel, rows = prepared.model.kernel, jnp.asarray(X)
    A, diagonal = (np.asarray(part, np.float64) for part in prepared.features(rows)[:2])
    left, chosen, columns = diagonal - np.sum(A**2, axis=1), [], []
    while len(chosen) < count:
        pivot = int(np.argmax(left / diagonal))
        if left[pivot] < known * diagonal[pivot]:
            break
        near = np.asarray(kernel.matrix(rows, rows[pivot : pivot + 1]), np.float64)[:, 0]
        column = near - A @ A[pivot]
        column -= sum((c * c[pivot] for c in columns), np.zeros(len(X)))
        column /= np.sqrt(left[pivot])
        columns.append(column)
        chosen.append(pivot)
        left = np.maximum(left - column**2, 0.0)
    return X[chosen]


def grown(
    theta: Theta, q: Natural, X: Float[np.ndarray, "N D"], wanted: int, jitter: float
) -> tuple[Theta, Natural]:
    """More inducing points, from the rows X, where `wanted` is far above their number."""
    size = theta.Z.shape[-2]
    if not theta.model.shared or wanted < GROWTH * size:
        return theta, q
    prepared, _ = prepare(*theta, jitter)
    added = new_points(prepared, X, wanted - size)
    if not len(added):
        return theta, q
    linear = np.pad(q.linear, ((0, 0), (0, len(added))))
    precision = np.stack([np.eye(size + len(added))] * len(q.linear))
    precision[:, :size, :size] = q.precision
    return Theta(theta.model, np.concatenate([theta.Z, added])), Natural(linear, precision)
