"""The loops of compiled functions, from their disassembly."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_FUNCTION = re.compile(r"^[0-9a-f]+ <(\w+)>:$")
_INSTRUCTION = re.compile(r"^\s*([0-9a-f]+):\t((?:data16 |cs )*\S+)\s*(.*)$")
_NOTHING = re.compile(r"(?:data16 |cs )*nop[wl]?|xchg")
_DOTS = re.compile(r"vpdp|tdp|v?pmadd")
_PRODUCT = re.compile(r"v?pmul|vfn?m(?:add|sub)|v?mulp")
_VECTOR = re.compile(r"v|p[a-z]|tile|tdp|[a-z]+ps$")


@dataclass(frozen=True)
class Instruction:
    """A line of a disassembly."""

    address: int
    mnemonic: str
    operands: str

    @property
    def goes_back_to(self) -> int | None:
        """Where a jump backwards ends; None for everything else."""
        if not self.mnemonic.startswith("j") or not self.operands.split():
            return None
        target = self.operands.split()[0]
        found = int(target, 16) if re.fullmatch(r"[0-9a-f]+", target) else self.address + 1
        return found if found <= self.address else None


@dataclass(frozen=True)
class Loop:
    """A loop of a function, without what only fills space."""

    function: str
    body: tuple[Instruction, ...]

    def count(self, mnemonic: str) -> int:
        """How many of its instructions are of this kind."""
        return sum(instruction.mnemonic == mnemonic for instruction in self.body)

    @property
    def counts(self) -> dict[str, int]:
        """How many instructions it has of each kind, the most first."""
        return dict(Counter(instruction.mnemonic for instruction in self.body).most_common())

    @property
    def work(self) -> tuple[int, ...]:
        """How many of its instructions are dot products, other products and others on vectors."""
        kinds = (_DOTS, _PRODUCT, _VECTOR)
        return tuple(sum(bool(kind.match(one.mnemonic)) for one in self.body) for kind in kinds)


def functions(disassembly: str) -> Iterator[tuple[str, list[Instruction]]]:
    """Name and instructions of each function of objdump's output."""
    name, body = "", list[Instruction]()
    for line in disassembly.splitlines():
        if start := _FUNCTION.match(line):
            yield name, body
            name, body = start[1], []
        elif found := _INSTRUCTION.match(line):
            body.append(Instruction(int(found[1], 16), found[2], found[3]))
    yield name, body


def innermost_loops(name: str, body: Sequence[Instruction]) -> Iterator[Loop]:
    """The loops of a function that have no loop inside: what lies between a jump backwards and where it ends."""
    spans = [(start, one.address) for one in body if (start := one.goes_back_to) is not None]
    for start, end in spans:
        if not any(start <= other[0] and other[1] <= end and other != (start, end) for other in spans):
            inside = (one for one in body if start <= one.address <= end)
            yield Loop(name, tuple(one for one in inside if not _NOTHING.fullmatch(one.mnemonic)))


def hottest(name: str, body: Sequence[Instruction]) -> Loop | None:
    """The innermost loop with the most dot products, or else products, or vectors; None where there is no loop."""
    return max(innermost_loops(name, body), key=lambda loop: (*loop.work, -len(loop.body)), default=None)
