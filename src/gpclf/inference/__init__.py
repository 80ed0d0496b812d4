"""From sites to q(v): rules, steps, hyper-parameters, and the engines that put them together."""

from gpclf.inference.engines import Engine, engine_from
from gpclf.inference.fit import Result, Settings, Watch, fit
from gpclf.inference.history import Progress
from gpclf.inference.plan import Plan, Sizes
from gpclf.inference.stops import FitError, Stop

__all__ = [
    "Engine",
    "FitError",
    "Plan",
    "Progress",
    "Result",
    "Settings",
    "Sizes",
    "Stop",
    "Watch",
    "engine_from",
    "fit",
]
