"""Everything process-wide, in one object: which programs there are, and where they are kept."""

import threading
from pathlib import Path
from typing import Any


class Process:
    """What our programs are in this process. `lock` is held by whoever changes it in a call."""

    def __init__(self):
        self.lock = threading.Lock()
        # in memory
        self.programs: list[Any] = []
        self.notes: list[dict] = []  # on which programs there are
        self.accepted: dict[str, bool] = {}  # whether XLA has an option, once one has failed
        # on disk
        self.folders: dict[str | None, Path | None] = {}  # of this process, by what names them
        self.folder = Path()  # where JAX keeps programs now
        self.passed_on = 0  # when that folder had last changed, then
        # under way, in all threads
        self.calls = 0
        self.settings: dict[str, object] = {}  # JAX's, as they were before the first call
        self.threads: list[threading.Thread] = []  # that compile in the background


PROCESS = Process()
