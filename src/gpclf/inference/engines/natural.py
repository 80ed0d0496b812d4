"""The natural engine: closed-form steps on sites, hyper-parameters on the dual bound."""

from numbers import Integral
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval, StrOptions

from gpclf.data import Rows
from gpclf.gaussian import Natural as NaturalForm
from gpclf.inference.context import FitContext
from gpclf.inference.drivers.natural_steps import NaturalSteps
from gpclf.inference.engines.base import COUNT, RATE, Asked
from gpclf.inference.engines.sites import COMMON, SiteEngine
from gpclf.inference.plan import Plan, Sizes, make_plan
from gpclf.inference.rules import Rule, Variational
from gpclf.inputs import Exact
from gpclf.likelihoods.logistic_softmax import LogisticSoftmaxFamily
from gpclf.model import Model, Theta


class Natural(SiteEngine):
    """Closed-form natural-gradient steps: the default.

    Parameters
    ----------
    optimizer : "auto", "lbfgs", "adam" or None
        For hyper-parameters: L-BFGS on the dual bound, of at most 8,192 rows, or up to 32,768
        where rows are many or inducing points have many numbers; Adam beside stochastic steps; or
        None to keep kernel and inducing points as they start. "auto": L-BFGS, with `class_subset`
        Adam.
    batch_size : "auto" or int
        Rows in a stochastic step. "auto": no stochastic steps but all rows at once, in chunks;
        with Adam 1,024.
    learning_rate : "auto" or float
        The first rate of stochastic steps, above 0 and at most 1; it falls to 0 with the last.
        "auto": one half, falling as the 0.6th power of their number, too. Full-batch steps find
        their own.
    class_subset : None or int
        Classes drawn at random for each stochastic step, so that its cost does not grow with their
        number: for "logistic-softmax" and "logistic-softmax-augmented" with many classes. None:
        all of them.
    learn_inducing : bool
        Whether inducing points move, too, when the kernel is learned.
    select : bool or "auto"
        Choose at the end how rough and how sure the kernel is, by the score of rows left out in
        folds under one kernel: its family (where `kernel` is None), a factor of all lengthscales
        and one of the variance. It needs all rows at once, and rows without errors; "auto", which
        `inference="auto"` means: wherever that is so and the kernel has no prior of the user's own.
        False: the kernel of the highest bound.
    """

    name = "natural"
    by_sums = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "optimizer": [StrOptions({"auto", "lbfgs", "adam"}), None],
        "batch_size": COUNT,
        "learning_rate": RATE,
        "class_subset": [None, Interval(Integral, 1, None, closed="left")],
        "learn_inducing": ["boolean"],
        "select": ["boolean", StrOptions({"auto"})],
    }

    def __init__(
        self,
        optimizer: Any = "auto",
        batch_size: Any = "auto",
        learning_rate: Any = "auto",
        class_subset: Any = None,
        learn_inducing: Any = True,
        select: Any = False,
    ):
        self.optimizer = optimizer
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.class_subset = class_subset
        self.learn_inducing = learn_inducing
        self.select = select

    def selects(self, model: Model, plan: Plan) -> bool:
        """Where that is asked for; "auto": where it can be."""
        if self.select != "auto":
            return bool(self.select)
        free = type(model.inputs) is Exact and not model.kernel.expected
        return free and plan.full_batch and plan.optimizer == "lbfgs"

    def adds_points(self, n_latent: int) -> bool:
        """Where rows left out may choose and functions are many."""
        whole = self.batch_size == "auto" and self.class_subset is None
        learns = self.optimizer in ("auto", "lbfgs")
        return bool(self.select) and whole and learns and n_latent >= COMMON

    def refuse(self, asked: Asked) -> None:
        """What folds need; for a few classes a sum over classes, and one kernel."""
        if self.select is True and asked.noisy:
            raise ValueError("select=True needs rows without errors of the inputs.")
        whole = self.batch_size == "auto" and self.class_subset is None
        if self.select is True and not (whole and self.optimizer in ("auto", "lbfgs")):
            raise ValueError(
                "select=True needs all rows and classes at once and a kernel that is learned: "
                'leave batch_size and optimizer at "auto" and class_subset at None.'
            )
        if self.class_subset is None or self.class_subset >= asked.n_classes:
            return
        if not isinstance(asked.likelihood, LogisticSoftmaxFamily):
            raise ValueError(
                "class_subset needs a likelihood that is a sum over classes: use "
                f'likelihood="logistic-softmax", not {type(asked.likelihood).__name__}.'
            )
        if not asked.shared:
            raise ValueError(
                'class_subset needs one kernel and one set of points for all: use share="both".'
            )
        if asked.inputs.estimated:
            raise ValueError(
                "class_subset needs rows of one node, where they were measured, and "
                f"{type(asked.inputs).__name__} puts nodes about that: use "
                'input_noise="first-order", or leave class_subset at None.'
            )

    def _drawn(self, n_latent: int) -> int | None:
        """How many classes a step draws; None for all."""
        if self.class_subset is None or self.class_subset >= n_latent:
            return None
        return int(self.class_subset)

    def plan(self, sizes: Sizes, max_epochs: int | str) -> Plan:
        """Rounds and full-batch steps, or epochs."""
        return make_plan(
            sizes,
            optimizer=self.optimizer,
            max_epochs=max_epochs,
            batch_size=self.batch_size,
            rate=self.learning_rate,
            stochastic=self._drawn(sizes.n_latent) is not None,
        )

    def rule(self, rows: Rows) -> Rule:
        """The ELBO's, whatever the rows."""
        return Variational()

    def steps(self, theta: Theta, q: NaturalForm, context: FitContext, seen: int) -> NaturalSteps:
        """On all classes, or on some that are drawn."""
        return NaturalSteps(theta, q, context, seen, self._drawn(len(q.linear)))
