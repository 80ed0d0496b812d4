"""Report: scores of predicted probabilities, and pictures of them."""

from gpclf.report.metrics import (
    ReliabilityCurve,
    Scores,
    accuracy,
    brier,
    ece,
    nll,
    reliability_curve,
    scores,
)
from gpclf.report.plots import decision_surface, reliability_diagram

__all__ = [
    "ReliabilityCurve",
    "Scores",
    "accuracy",
    "brier",
    "decision_surface",
    "ece",
    "nll",
    "reliability_curve",
    "reliability_diagram",
    "scores",
]
