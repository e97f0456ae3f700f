"""The transform ops of `vector`: generated, one attribute each."""

from typing import Any

def __getattr__(name: str) -> Any: ...
