"""The `func` dialect: op classes and builders are generated, one attribute each."""

from typing import Any

def __getattr__(name: str) -> Any: ...
