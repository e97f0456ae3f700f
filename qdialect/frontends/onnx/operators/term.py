"""Formulas over f32 values, written once: they build upstream ops, or compute with NumPy what those ops mean."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from qdialect._mlir import ir
from qdialect.dialect.type_constraints import shape_of
from qdialect.frontends.planning.emitter import Emitter
from qdialect.quant_math import FloatArray
from qdialect.quant_math.scalar_functions import FLOAT_FUNCTIONS


class Term(ABC):
    """f32 values in a formula; a number beside them stands for one of each, rounded to their type."""

    @abstractmethod
    def apply(self, name: str, *others: Term | float) -> Term:
        """The element-wise upstream op `name` of these numbers and `others`."""

    @abstractmethod
    def filled(self, number: float) -> Term:
        """As many times `number`."""

    def __add__(self, other: Term | float) -> Term:
        return self.apply("arith.addf", other)

    def __sub__(self, other: Term | float) -> Term:
        return self.apply("arith.subf", other)

    def __mul__(self, other: Term | float) -> Term:
        return self.apply("arith.mulf", other)

    def __truediv__(self, other: Term | float) -> Term:
        return self.apply("arith.divf", other)

    def __neg__(self) -> Term:
        return self.apply("arith.negf")

    def __abs__(self) -> Term:
        return self.apply("math.absf")

    def reciprocal(self) -> Term:
        """1 / x."""
        return self.filled(1.0) / self

    def at_least(self, bound: Term | float) -> Term:
        """max(x, bound)."""
        return self.apply("arith.maximumf", bound)

    def at_most(self, bound: Term | float) -> Term:
        """min(x, bound)."""
        return self.apply("arith.minimumf", bound)


@dataclass(frozen=True)
class Built(Term):
    """A value of the module."""

    emitter: Emitter
    value: ir.Value

    def apply(self, name: str, *others: Term | float) -> Built:
        values = [self._term(other).value for other in others]
        return Built(self.emitter, self.emitter.float_op(name, self.value, *values))

    def filled(self, number: float) -> Built:
        array = np.broadcast_to(np.float32(number), shape_of(self.value.type))
        return Built(self.emitter, self.emitter.constant(array))

    def _term(self, other: Term | float) -> Built:
        if isinstance(other, Built):
            return other
        assert not isinstance(other, Term)
        return self.filled(other)


@dataclass(frozen=True)
class Evaluated(Term):
    """An array."""

    array: FloatArray

    def apply(self, name: str, *others: Term | float) -> Evaluated:
        arrays = [self._term(other).array for other in others]
        with np.errstate(all="ignore"):
            return Evaluated(FLOAT_FUNCTIONS[name](self.array, *arrays).astype(self.array.dtype))

    def filled(self, number: float) -> Evaluated:
        return Evaluated(np.full(self.array.shape, number, dtype=self.array.dtype))

    def _term(self, other: Term | float) -> Evaluated:
        if isinstance(other, Evaluated):
            return other
        assert not isinstance(other, Term)
        return self.filled(other)
