"""Active learning: which rows to ask the labels of."""

from gpclf.active.learner import Learner

__all__ = ["Learner"]
