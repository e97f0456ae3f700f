"""Operators of 16-bit activations, whose zero points are 0; one family a file."""

from __future__ import annotations

from qdialect.registry import import_modules

import_modules(__name__, __path__)
