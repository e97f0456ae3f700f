"""The stages of a fused op's epilogue, which compute on accumulators before they are stored.

A new file of this package is a new stage: all of them are imported here.
"""

from __future__ import annotations

from qdialect.support.registry import import_modules

import_modules(__name__, __path__)
