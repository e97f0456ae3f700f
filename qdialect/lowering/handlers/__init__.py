"""From a `qnn` op to kernel calls: one handler for each op.

A new file of this package may register more: all of them are imported here.
"""

from __future__ import annotations

from qdialect.registry import import_modules

import_modules(__name__, __path__)
