"""Compiled programs: in memory and not for ever, on disk for other processes, in the background.

Nothing happens when this is imported: no setting of Python or JAX changes, and no program is
compiled before it is first called. What is process-wide is in one object, `state.PROCESS`.
"""

from gpclf.compilation.background import in_background
from gpclf.compilation.calls import compiled_once
from gpclf.compilation.programs import (
    PLAIN,
    QUICK,
    clear_programs,
    cleared_with_programs,
    in_memory,
    program,
    program_of_two,
)

__all__ = [
    "PLAIN",
    "QUICK",
    "clear_programs",
    "cleared_with_programs",
    "compiled_once",
    "in_background",
    "in_memory",
    "program",
    "program_of_two",
]
