"""The transform ops of `tensor`: generated, one attribute each."""

from typing import Any

def __getattr__(name: str) -> Any: ...
