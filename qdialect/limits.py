"""What this machine has."""

from __future__ import annotations

import os
import resource


def memory_limit() -> int:
    """Bytes of memory that this process may have: the machine's, or less where the process is limited."""
    maximum = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    allowed, _ = resource.getrlimit(resource.RLIMIT_AS)
    return maximum if allowed == resource.RLIM_INFINITY else min(maximum, allowed)
