"""The ops of `x86`: generated, one attribute each."""

from typing import Any

def __getattr__(name: str) -> Any: ...
