"""From sites to q(v): the natural engine, hyper-parameters and the loop that runs them."""

from gpclf.inference.journal import FitError, Progress
from gpclf.inference.loop import Result, fit
from gpclf.inference.plan import Plan, make_plan

__all__ = ["FitError", "Plan", "Progress", "Result", "fit", "make_plan"]
