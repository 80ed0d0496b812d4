"""What an engine is: an object with its own options that takes θ and q through a fit."""

from abc import ABC, abstractmethod
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

from sklearn.base import BaseEstimator, clone
from sklearn.utils._param_validation import Interval, StrOptions

from gpclf.data import Rows
from gpclf.gaussian import Natural
from gpclf.inference.context import FitContext, Outcome
from gpclf.inference.plan import Plan, Sizes
from gpclf.inputs import Inputs
from gpclf.likelihoods import Likelihood
from gpclf.model import Model, Theta

RATE = [StrOptions({"auto"}), Interval(Real, 0, 1, closed="right")]
COUNT = [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")]


class Asked(NamedTuple):
    """What a fit is asked to do, as far as an engine may have to refuse it."""

    likelihood: Likelihood
    inputs: Inputs
    n_classes: int
    shared: bool  # one kernel and one set of points for all functions
    even: bool  # every row counts once
    noisy: bool  # errors of inputs, by any remedy


class Engine(BaseEstimator, ABC):
    """Finds the posterior, and hyper-parameters unless they are kept.

    Options are constructor parameters, as in any estimator of scikit-learn: an engine can be
    cloned, printed and searched over (`inference__alpha`).
    """

    name: ClassVar[str]
    by_sums: ClassVar[bool] = False  # passes give sums; nothing of a row is kept from one to next
    _parameter_constraints: ClassVar[dict[str, list[Any]]]

    def validate(self) -> None:
        """Refuse options that make no sense, in a sentence."""
        self._validate_params()

    def refuse(self, asked: Asked) -> None:
        """A ValueError, in a sentence, where the engine cannot do what is asked."""

    def on_batches(self, batch_rows: int | str = "auto") -> "Engine":
        """The same engine for rows of which something is drawn anew for every batch.

        The size of a batch is that which was asked for, or else `batch_rows`.
        """
        options = self.get_params()
        if options.get("optimizer") != "auto":
            return self
        if "batch_size" not in options:
            raise ValueError(
                f'inference="{self.name}" takes all rows at once, and these inputs need batches: '
                'use "natural".'
            )
        size = batch_rows if options["batch_size"] == "auto" else options["batch_size"]
        made: Any = clone(self)
        return made.set_params(optimizer="adam", batch_size=size)

    def adds_points(self, n_latent: int) -> bool:
        """Whether further inducing points will come, once those of the start have been learned."""
        return False

    @abstractmethod
    def plan(self, sizes: Sizes, max_epochs: int | str) -> Plan:
        """What a fit of this size will do."""

    @abstractmethod
    def run(self, theta: Theta, q: Natural, context: FitContext, known: bool) -> Outcome:
        """A fit; `known`: q is of these rows."""

    def compile_ahead(
        self, model: Model, n_inducing: int, rows: Rows, n_latent: int, plan: Plan
    ) -> None:
        """Begin to compile what a fit will need; nothing, unless changed."""


def refuse_noise(engine: Engine, asked: Asked) -> None:
    """For engines that take rows as exact."""
    if asked.noisy:
        raise ValueError(
            f'inference="{engine.name}" takes rows as exact: use "natural" where inputs have '
            "errors."
        )
