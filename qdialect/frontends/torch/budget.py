"""How much memory an import may take for constants: a bound that grows with the constants of the program."""

from __future__ import annotations

from dataclasses import dataclass

from qdialect.frontends.common import require

_MIN_BYTES = 1 << 28
_FACTOR = 16


@dataclass
class Budget:
    """Bytes that operators read from constants and write to new ones, so far and at most."""

    limit: int
    spent: int = 0

    @staticmethod
    def of(constants: int) -> Budget:
        """For a program with so many bytes of constants.

        A few nodes can name one constant again and again, or create large ones; networks read theirs about once.
        """
        return Budget(_MIN_BYTES + _FACTOR * constants)

    def spend(self, amount: int) -> None:
        """Take an `amount` of bytes; raises `UnsupportedError` where so many are not left."""
        needed = self.spent + amount
        require(needed <= self.limit, f"constants must take at most {self.limit} bytes in all, but take {needed} here")
        self.spent = needed
