"""What the stages of an epilogue mean, one stage a file; all of them are imported here."""

from __future__ import annotations

from qdialect.support.registry import import_modules

import_modules(__name__, __path__)
