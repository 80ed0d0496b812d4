"""(m, L, θ) as one vector for an optimiser of plain numbers, and back."""

import jax
import numpy as np

from gpclf.inference.factored import Factored
from gpclf.inference.hyper import LOG_REACH, flat, shaped_like
from gpclf.model import Theta

LEAST_LOG, MOST_LOG = -12.0, 6.0  # of the diagonal of L: exp stays a number that algebra can use


class Coordinates:
    """The lower triangles, the means and, where it is free, θ."""

    def __init__(self, q: Factored, theta: Theta, *, free: bool, move_points: bool):
        self._lower = np.tril_indices(q.root.shape[-1])
        self._shapes = q.mean.shape, q.root.shape
        self._theta = theta
        self._leaves, self._structure = jax.tree.flatten(theta)
        self._free, self._move_points = free, move_points

    def nothing(self) -> Factored:
        """Zero for every number of q."""
        return Factored(*(np.zeros(shape) for shape in self._shapes))

    def pack(self, q: Factored, theta: Theta | None) -> np.ndarray:
        """A place or a gradient as a vector: means, triangles, and θ with Z at its end."""
        of_q = [np.asarray(q.mean), np.asarray(q.root)[:, *self._lower]]
        return flat([*of_q, *jax.tree.leaves(theta)] if self._free else of_q)

    def unpack(self, numbers: np.ndarray) -> tuple[Factored, Theta]:
        """The place that `pack` made a vector of."""
        shape, of_roots = self._shapes
        means, in_triangles = shape[0] * shape[1], of_roots[0] * len(self._lower[0])
        mean, triangles, rest = np.split(numbers, [means, means + in_triangles])
        root = np.zeros(of_roots)
        root[:, *self._lower] = triangles.reshape(of_roots[0], -1)
        if not self._free:
            return Factored(mean.reshape(shape), root), self._theta
        leaves = shaped_like(self._leaves, rest)
        return Factored(mean.reshape(shape), root), jax.tree.unflatten(self._structure, leaves)

    def limits(self) -> tuple[np.ndarray, np.ndarray]:
        """What no number may leave; points that must not move have no room."""
        shape, of_roots = self._shapes
        diagonal = np.eye(of_roots[-1], dtype=bool)
        ends = []
        for log, reach in ((LEAST_LOG, -1.0), (MOST_LOG, 1.0)):
            of_root = np.broadcast_to(np.where(diagonal, log, reach * np.inf), of_roots)
            of_theta = [np.asarray(leaf) + reach * LOG_REACH for leaf in self._leaves]
            Z = np.asarray(self._theta.Z)
            of_theta[-1] = np.full_like(Z, reach * np.inf) if self._move_points else Z
            theta = jax.tree.unflatten(self._structure, of_theta)
            ends.append(self.pack(Factored(np.full(shape, reach * np.inf), of_root), theta))
        return ends[0], ends[1]
