"""Power-EP: sweeps of all sites at once and hyper-parameters on its energy, or stochastic EP."""

from numbers import Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval, StrOptions

from gpclf.data import Rows
from gpclf.gaussian import Natural
from gpclf.inference.context import FitContext
from gpclf.inference.drivers.epochs import Mover
from gpclf.inference.drivers.natural_steps import TiedSteps
from gpclf.inference.engines.base import COUNT, RATE, Asked, refuse_noise
from gpclf.inference.engines.sites import SiteEngine
from gpclf.inference.plan import Plan, Sizes, make_plan
from gpclf.inference.power_passes import Fraction
from gpclf.inference.power_rule import PowerRule
from gpclf.model import Theta


class PowerEP(SiteEngine):
    """Expectation propagation, and what lies between it and variational inference.

    Parameters
    ----------
    alpha : float
        The power, above 0 and at most 1: 1 is EP (with inducing points EP-FITC), close to 0
        variational inference. One half often has a lower log-loss than both.
    optimizer : "auto", "lbfgs", "adam" or None
        For hyper-parameters: L-BFGS on the energy, Adam beside stochastic EP, or None to keep them.
    batch_size : "auto" or int
        Rows in a step of stochastic EP, which has one site for all rows. "auto": a site for each
        row, and all rows at once; with Adam 1,024.
    learning_rate : "auto" or float
        The first rate of stochastic EP, above 0 and at most 1; it falls to 0 with the last step.
    learn_inducing : bool
        Whether inducing points move, too, when the kernel is learned.
    """

    name = "power-ep"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "alpha": [Interval(Real, 0, 1, closed="right")],
        "optimizer": [StrOptions({"auto", "lbfgs", "adam"}), None],
        "batch_size": COUNT,
        "learning_rate": RATE,
        "learn_inducing": ["boolean"],
    }

    def __init__(
        self,
        alpha: Any = 1.0,
        optimizer: Any = "auto",
        batch_size: Any = "auto",
        learning_rate: Any = "auto",
        learn_inducing: Any = True,
    ):
        self.alpha = alpha
        self.optimizer = optimizer
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.learn_inducing = learn_inducing

    def refuse(self, asked: Asked) -> None:
        """A site stands on one projection of its row: a row has one node."""
        refuse_noise(self, asked)

    def plan(self, sizes: Sizes, max_epochs: int | str) -> Plan:
        """Rounds and sweeps, or epochs."""
        return make_plan(
            sizes,
            optimizer=self.optimizer,
            max_epochs=max_epochs,
            batch_size=self.batch_size,
            rate=self.learning_rate,
        )

    def rule(self, rows: Rows) -> PowerRule:
        """α, and whether some of the rows count less than one."""
        return PowerRule(Fraction(float(self.alpha), rows.uneven))

    def steps(self, theta: Theta, q: Natural, context: FitContext, seen: int) -> TiedSteps:
        """Stochastic EP."""
        return TiedSteps(theta, q, context, seen, float(self.alpha))

    def remark(self, improper: int, steps: Mover | None) -> str:
        """Rows that kept their sites, or had none."""
        if isinstance(steps, TiedSteps) and steps.without:
            return f", {steps.without} rows without a site in the last epoch"
        if improper:
            return f", {improper} rows without a proper cavity kept their sites"
        return ""
