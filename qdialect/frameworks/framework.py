"""A framework as an optional package."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from qdialect.diagnostics import ImportModelError


@dataclass(frozen=True)
class Framework:
    """`name` is what messages call it, `package` the module that is imported."""

    name: str
    package: str

    def is_installed(self) -> bool:
        """Whether the package is there; it is not loaded."""
        return find_spec(self.package.partition(".")[0]) is not None

    def load(self) -> Any:
        """The module; raises `ImportModelError` where it cannot be imported."""
        try:
            return import_module(self.package)
        except ImportError as error:
            raise ImportModelError(f"{self.name} cannot be loaded: {error}; {self.hint}") from error

    @property
    def hint(self) -> str:
        """What to install."""
        return f"the extra 'fallback' brings {self.name}: pip install 'qdialect[fallback]'"
