"""Programs of a fit, compiled beside other work.

XLA works outside Python's lock. Threads run on zeros what steps on q need, the longest first,
another what follows them. Python waits for all before it ends, because XLA cannot be left in the
middle.
"""

from dataclasses import replace
from typing import Any

import jax
import numpy as np

from gpclf.compilation import cleared_with_programs, in_background
from gpclf.data import Chunk
from gpclf.gaussian import Natural
from gpclf.inference.hyper import log_prior
from gpclf.inference.passes import blank_features, held_sum, theta_pass, with_features
from gpclf.inference.rules import Rule
from gpclf.inputs import Whitening
from gpclf.likelihoods import Sites
from gpclf.model import Model, Prepared, prepare_pullback
from gpclf.precision import double_precision


class Programs:
    """The programs of a rule and its dual objective, for chunks of one shape."""

    def __init__(self, rule: Rule, prepared: Prepared, chunk: Chunk, n_latent: int):
        features = blank_features(prepared, chunk)
        seen = replace(chunk, features=features)
        sites = Sites(*np.zeros((2, prepared.nodes(len(chunk.weight)), n_latent), chunk.X.dtype))
        q = Natural.standard(n_latent, prepared.Z.shape[-2])

        def follow() -> None:
            by_prepared = theta_pass(prepared, features, q, sites, seen)
            prepare_pullback(prepared, by_prepared)
            held_sum(prepared, sites, seen)
            log_prior(prepared.model)

        steps = [*rule.programs(prepared, seen, n_latent), lambda: with_features(prepared, chunk)]
        self._steps = [in_background(double_precision(work)) for work in steps]
        self._rest = in_background(double_precision(follow))

    def wait_for_steps(self) -> None:
        """Until those of steps on q are there."""
        for thread in self._steps:
            thread.join()

    def wait(self) -> None:
        """Until all are there."""
        self.wait_for_steps()
        self._rest.join()


_programs: dict[Any, Programs] = cleared_with_programs({})


def compiled_beside(rule: Rule, prepared: Prepared, chunk: Chunk, n_latent: int) -> Programs:
    """The programs for chunks of this shape; a second call finds the first one's."""
    leaves, structure = jax.tree.flatten((prepared, chunk))
    shapes = tuple((leaf.shape, leaf.dtype) for leaf in leaves)
    key = (rule.key, structure, shapes, n_latent)
    if key not in _programs:
        _programs[key] = Programs(rule, prepared, chunk, n_latent)
    return _programs[key]


def compile_ahead(rule: Rule, model: Model, n_inducing: int, chunk: Chunk, n_latent: int) -> None:
    """Begin to compile the programs of a fit whose inducing points are not known yet."""
    own = () if model.shared else (n_latent,)
    sets = () if model.shared_points else (n_latent,)
    Z = np.zeros((*sets, n_inducing, chunk.X.shape[1]))
    matrices = np.zeros((*own, n_inducing, n_inducing))
    whitening = Whitening(matrices, matrices[..., 0])
    blank: Prepared = jax.device_put(Prepared(model, Z, whitening))
    compiled_beside(rule, blank, chunk, n_latent)
