"""A call of a function of another library: all that a process knows of it which loads a compiled network."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ExternalCall:
    """A call of a C function of another library, as messages tell of it."""

    title: str
    target: str
    symbol: str
    location: str
    """``file:line:column``; empty where it is unknown."""

    @property
    def position(self) -> tuple[str, int, int]:
        """File, line and column; empty and zeros where they are unknown."""
        file, *numbers = self.location.rsplit(":", 2)
        return (file, int(numbers[0]), int(numbers[1])) if len(numbers) == 2 else ("", 0, 0)
