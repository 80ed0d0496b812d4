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
from gpclf.inference.rules import Rule, nothing_said
from gpclf.inputs import Whitening
from gpclf.model import Model, Prepared, prepare_pullback
from gpclf.precision import double_precision


class Programs:
    """The programs of a rule and its dual objective, for chunks of one shape."""

    def __init__(self, rule: Rule, prepared: Prepared, chunk: Chunk, prior: Natural):
        features = blank_features(prepared, chunk)
        seen = replace(chunk, features=features)
        sites = nothing_said(prepared, chunk, prior)

        def follow() -> None:
            by_prepared = theta_pass(prepared, features, prior, sites, seen)
            prepare_pullback(prepared, by_prepared)
            held_sum(prepared, sites, seen)
            log_prior(prepared.model)

        steps = [*rule.programs(prepared, seen, prior), lambda: with_features(prepared, chunk)]
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


def compiled_beside(rule: Rule, prepared: Prepared, chunk: Chunk, prior: Natural) -> Programs:
    """The programs for such chunks and such a q; a second call finds the first one's."""
    leaves, structure = jax.tree.flatten((prepared, chunk))
    shapes = tuple((leaf.shape, leaf.dtype) for leaf in leaves)
    key = (rule.key, structure, shapes, *(part.shape for part in prior))
    if key not in _programs:
        _programs[key] = Programs(rule, prepared, chunk, prior)
    return _programs[key]


def compile_ahead(rule: Rule, model: Model, chunk: Chunk, prior: Natural) -> None:
    """Begin to compile the programs of a fit whose inducing points are not known yet."""
    n_latent, n_inducing = prior.linear.shape
    own = () if model.shared else (n_latent,)
    sets = () if model.shared_points else (n_latent,)
    Z = np.zeros((*sets, n_inducing, chunk.X.shape[1]))
    matrices = np.zeros((*own, n_inducing, n_inducing))
    whitening = Whitening(matrices, matrices[..., 0])
    blank: Prepared = jax.device_put(Prepared(model, Z, whitening))
    compiled_beside(rule, blank, chunk, prior)
