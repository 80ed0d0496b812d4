"""How a row reaches the Gaussian process."""

from gpclf.inputs.amortised import Amortised, Network
from gpclf.inputs.base import Features, Inputs, Nodes, Own, PredictionNodes, Whitening
from gpclf.inputs.exact import Exact
from gpclf.inputs.first_order import FirstOrder
from gpclf.inputs.latent import Augmented, Latent, auto_places, quick_places
from gpclf.inputs.noise import Noisy
from gpclf.inputs.parametric import Parametric

__all__ = [
    "Amortised",
    "Augmented",
    "Exact",
    "Features",
    "FirstOrder",
    "Inputs",
    "Latent",
    "Network",
    "Nodes",
    "Noisy",
    "Own",
    "Parametric",
    "PredictionNodes",
    "Whitening",
    "auto_places",
    "quick_places",
]
