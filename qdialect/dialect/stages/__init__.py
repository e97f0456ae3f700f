"""The stages of a fused op's epilogue: what is done to accumulators before they are stored, one stage a file.

A new file of this package is a new stage: all of them are imported here.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
