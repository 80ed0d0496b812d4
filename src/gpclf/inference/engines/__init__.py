"""The engines, each an object with its own options, and their names."""

from collections.abc import Callable

from gpclf.inference.engines.base import Asked, Engine
from gpclf.inference.engines.decoupled import Decoupled
from gpclf.inference.engines.gradient import Gradient
from gpclf.inference.engines.mean_field import MeanField
from gpclf.inference.engines.natural import Natural
from gpclf.inference.engines.power_ep import PowerEP

__all__ = ["Asked", "Decoupled", "Engine", "Gradient", "MeanField", "Natural", "PowerEP"]

KINDS: dict[str, type[Engine]] = {
    kind.name: kind for kind in (Natural, Gradient, Decoupled, PowerEP, MeanField)
}
NAMES: dict[str, Callable[[], Engine]] = {"auto": lambda: Natural(select="auto"), **KINDS}


def engine_from(inference: str | Engine) -> Engine:
    """The engine of a name, with its defaults, or the engine itself."""
    return NAMES[inference]() if isinstance(inference, str) else inference
