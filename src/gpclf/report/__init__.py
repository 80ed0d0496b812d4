"""Report: scores of predicted probabilities, and pictures of them."""

from gpclf.report.intervals import Interval, intervals
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
from gpclf.report.ranking import auc, auc_by_class

__all__ = [
    "Interval",
    "ReliabilityCurve",
    "Scores",
    "accuracy",
    "auc",
    "auc_by_class",
    "brier",
    "decision_surface",
    "ece",
    "intervals",
    "nll",
    "reliability_curve",
    "reliability_diagram",
    "scores",
]
