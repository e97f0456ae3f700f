"""How many threads of the OpenMP runtime calls may ask for in this process."""

from __future__ import annotations

import ctypes
import os

from qdialect.threads import MAX

TEAM_LIMIT = ctypes.c_int32(MAX)
"""How many threads compiled code asks for at most; it is read at every call."""


def _compute_alone() -> None:
    # Threads do not survive a fork, and libgomp waits for them for ever. What else uses the runtime is not asked: its
    # own settings stay as they are.
    TEAM_LIMIT.value = 1


os.register_at_fork(after_in_child=_compute_alone)
