"""The options of ``torch.compile(model, backend="qdialect", options=...)``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal

from qdialect.diagnostics import InputError
from qdialect.options import Fallback, check_choice, check_fallback
from qdialect.threads import checked

_CACHES = ("on", "off")


@dataclass(frozen=True)
class TorchOptions:
    """What the backend is asked for beside the model."""

    fallback: Fallback | None = None
    """Who runs nodes that cannot be compiled; by default PyTorch, with a warning."""
    threads: int = 1
    """Among how many threads each call is divided."""
    cache: Literal["on", "off"] = "on"
    """Whether the user's cache folder is used."""

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> TorchOptions:
        """The options by name; raises `InputError` for others and for other values, `CompileError` for the threads."""
        names = [field.name for field in fields(cls)]
        unknown = sorted(options.keys() - set(names))
        if unknown:
            raise InputError(f"options of torch.compile must be {', '.join(names)}, but got {', '.join(unknown)}")
        found = cls(options.get("fallback"), checked(options.get("threads", 1)), options.get("cache", "on"))
        check_fallback(found.fallback)
        check_choice("cache", found.cache, _CACHES)
        return found
