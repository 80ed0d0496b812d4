"""Rows known exactly."""

from gpclf.inputs.base import Inputs


class Exact(Inputs):
    """x is what was measured."""
