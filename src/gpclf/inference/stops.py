"""Why a fit, or a part of it, ended: values, with a sentence each."""

from enum import StrEnum


class Stop(StrEnum):
    """A reason; its value is what a user reads in `stopped_`."""

    CONVERGED = "converged"
    FIXED = "fixed"
    STEPS = "step limit"
    EVALUATIONS = "evaluation limit"
    EPOCHS = "epoch limit"
    NO_STEP = "no step along the sites is an improvement"
    NOT_A_NUMBER = "the bound is not a number: kept as they were"
    ENOUGH = "enough, by a callback or on the validation rows"
    TIME = "time limit"
    INTERRUPTED = "interrupted"
    NO_POINT = "no row needs a point of its own"


class FitError(ArithmeticError):
    """Numbers that are not numbers, where no smaller step or larger jitter helped."""
