"""The reference semantics of the stages of an epilogue; all modules are imported here."""

from __future__ import annotations

from qdialect.support.registry import import_modules

import_modules(__name__, __path__)
