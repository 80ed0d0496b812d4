"""Likelihoods: p(y | f), by name or as objects, one family per file."""

from typing import Any

from gpclf.likelihoods.additive_noise import NoisyLogit, NoisyProbit, RobustMax, Step
from gpclf.likelihoods.base import Likelihood, Sites, TwoClass
from gpclf.likelihoods.from_log_prob import FromLogProb
from gpclf.likelihoods.logistic_softmax import LogisticSoftmax, LogisticSoftmaxAugmented
from gpclf.likelihoods.logit import Logit
from gpclf.likelihoods.logit_pg import LogitPG
from gpclf.likelihoods.probit import Probit
from gpclf.likelihoods.softmax import Softmax, SoftmaxGumbel
from gpclf.names import is_class, unknown

__all__ = [
    "FromLogProb",
    "Likelihood",
    "LogisticSoftmax",
    "LogisticSoftmaxAugmented",
    "Logit",
    "LogitPG",
    "NoisyLogit",
    "NoisyProbit",
    "Probit",
    "RobustMax",
    "Sites",
    "Softmax",
    "SoftmaxGumbel",
    "Step",
    "TwoClass",
    "likelihood_from",
]

NAMES = {
    "logit": Logit,
    "logit-pg": LogitPG,
    "probit": Probit,
    "step": Step,
    "noisy-probit": NoisyProbit,
    "noisy-logit": NoisyLogit,
    "softmax": Softmax,
    "softmax-gumbel": SoftmaxGumbel,
    "logistic-softmax": LogisticSoftmax,
    "logistic-softmax-augmented": LogisticSoftmaxAugmented,
    "robust-max": RobustMax,
}


def likelihood_from(spec: Any, n_classes: int) -> Likelihood:
    """The likelihood that a name or an object stands for, checked against the number of classes."""
    if spec == "auto":
        spec = "logit" if n_classes == 2 else "softmax"
    if isinstance(spec, str):
        if spec not in NAMES:
            raise ValueError(unknown("likelihood", spec, ["auto", *NAMES]))
        spec = NAMES[spec]()
    if isinstance(spec, type) and issubclass(spec, Likelihood):
        raise ValueError(is_class("likelihood", spec))
    if not isinstance(spec, Likelihood):
        raise ValueError(f"likelihood must be a Likelihood or a name, got {spec!r}.")
    spec.n_latent(n_classes)
    return spec
