"""Report: scores of predicted probabilities, pictures of them, and a page about a classifier."""

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
from gpclf.report.report import Report, make_report
from gpclf.report.subject import Subject, Table

__all__ = [
    "Interval",
    "ReliabilityCurve",
    "Report",
    "Scores",
    "Subject",
    "Table",
    "accuracy",
    "auc",
    "auc_by_class",
    "brier",
    "decision_surface",
    "ece",
    "intervals",
    "make_report",
    "nll",
    "reliability_curve",
    "reliability_diagram",
    "scores",
]
