"""Imports at first use, which a fork waits for, and when the first one was."""

from __future__ import annotations

import os
import time
from importlib import import_module
from threading import RLock

IMPORTED = time.time()
"""When the package was imported, in seconds since the epoch: a module that changed since may not be what runs."""

LATE_IMPORTS = RLock()
"""Held while a function that users call imports what it runs; never taken by a module while it is imported itself.

Python has a lock for every module that is being imported.  The thread that imports does not survive a fork, and the
child would wait for that lock for ever.
"""

# What is imported takes the lock of `logging` while it has the one above.  A fork has to take them in the same order,
# which is the reverse of that in which they were registered, and `logging` registers its own when it is imported.
import_module("logging")
os.register_at_fork(
    before=LATE_IMPORTS.acquire, after_in_parent=LATE_IMPORTS.release, after_in_child=LATE_IMPORTS.release
)
