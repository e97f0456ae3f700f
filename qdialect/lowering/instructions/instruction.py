"""The definition of an instruction: its intrinsic, the features that it needs, and its meaning.

The meaning is a NumPy function on lanes, and once more plain vector ops, which every machine can execute: where code
is emitted portably, a strategy runs on a machine that lacks its instructions, with the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdialect.ir._mlir import ir
from qdialect.lowering.ir import building as b

Array = NDArray[Any]

_IS_PORTABLE: ContextVar[bool] = ContextVar("_IS_PORTABLE", default=False)


@dataclass(frozen=True)
class Lanes:
    """An operand or a result: a vector of integers, or of f32 or bf16 numbers."""

    count: int
    dtype: str
    """NumPy's name of a lane's type; integers are signless in the IR."""

    @property
    def type(self) -> ir.VectorType:
        bits = np.dtype(self.dtype).itemsize * 8
        floats = {"float32": ir.F32Type, "bfloat16": ir.BF16Type}
        element = floats[self.dtype].get() if self.dtype in floats else ir.IntegerType.get_signless(bits)
        return ir.VectorType.get([self.count], element)


@dataclass(frozen=True)
class Instruction:
    """An instruction on whole vectors."""

    name: str
    """The mnemonic and the bits of a vector."""
    intrinsic: str
    """LLVM's name, with which it is called."""
    features: tuple[frozenset[str], ...]
    """The features that a CPU needs, by LLVM's names: all of one of these sets."""
    operands: tuple[Lanes, ...]
    result: Lanes
    meaning: Callable[..., Array]
    """The result's lanes by those of the operands."""
    portable: Callable[..., ir.Value]
    """The same in vector ops."""
    arguments: Callable[..., Sequence[ir.Value]] = lambda *operands: operands
    """The function from the operands to the intrinsic's arguments."""

    def runs_on(self, features: frozenset[str]) -> bool:
        """Whether a CPU with `features` has it."""
        return any(needed <= features for needed in self.features)

    def emit(self, *operands: ir.Value) -> ir.Value:
        """Its result, before the current insertion point."""
        if _IS_PORTABLE.get():
            return self.portable(*operands)
        return b.intrinsic(self.intrinsic, self.result.type, *self.arguments(*operands))


@contextmanager
def portable_emission(is_portable: bool) -> Generator[None]:
    """Where `is_portable`, emit instructions as vector ops within the context."""
    token = _IS_PORTABLE.set(is_portable)
    try:
        yield
    finally:
        _IS_PORTABLE.reset(token)


def every(lanes: ir.Value, start: int, step: int) -> ir.Value:
    """Each lane `step` after the one before, from lane `start` on."""
    return b.shuffle(lanes, lanes, list(range(start, b.shape_of(lanes)[0], step)))
