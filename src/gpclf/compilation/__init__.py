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

beside, forgotten_with_programs = in_background, cleared_with_programs  # as inference calls them

__all__ = [
    "PLAIN",
    "QUICK",
    "beside",
    "clear_programs",
    "cleared_with_programs",
    "compiled_once",
    "forgotten_with_programs",
    "in_background",
    "in_memory",
    "program",
    "program_of_two",
]
