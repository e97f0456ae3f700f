"""Linux's permission to use matrix tiles: it saves their 8 KB at a switch of threads for processes that asked for it.

The Linux kernel's documentation, "Using XSTATE features in user space applications": without permission the first
instruction on a tile ends the process.  The permission is that of all threads and of processes that are forked later.
"""

from __future__ import annotations

import ctypes
from functools import cache

PERMISSION_CALL, REQUEST, COMPONENT = 158, 0x1023, 18
"""`arch_prctl(ARCH_REQ_XCOMP_PERM, XTILEDATA)` of x86-64, by numbers."""


@cache
def may_use_tiles() -> bool:
    """Ask, once in a process, for matrix tiles; false where Linux refuses or is too old to know them."""
    libc = ctypes.CDLL(None, use_errno=True)
    return libc.syscall(PERMISSION_CALL, REQUEST, COMPONENT) == 0
