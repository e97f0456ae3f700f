"""The instructions that the patterns of the x86 step emit on each kind of target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from qdialect.lowering.instructions import dot_products
from qdialect.lowering.instructions.instruction import Instruction
from qdialect.lowering.instructions.lanes import CVTPS2DQ, VCVTPS2DQ, VPERMD
from qdialect.lowering.instructions.tiles import TDPBUSD
from qdialect.targets import Target
from qdialect.targets.machine import Machine


@dataclass(frozen=True)
class InstructionSet:
    """The instructions of one kind of target."""

    lanes: int
    """32-bit lanes of the widest vector."""
    byte_dots: Mapping[int, dot_products.EmitDot]
    """By lanes: four products of an unsigned by a signed byte, added to each."""
    word_dots: Mapping[int, dot_products.EmitDot]
    """By lanes: two products of signed words, added to each."""
    pair_dots: Mapping[int, dot_products.EmitDot]
    """By lanes: the same as `byte_dots` in fewer instructions, where `pair_sums` allows; empty where none has fewer."""
    multiplies_words: bool
    """Whether dot products are of words, so that bytes are widened."""
    has_byte_permutes: bool
    """Whether `vpermi2b` looks up tables."""
    has_byte_shuffles: bool
    """Whether `vpshufb` does."""
    signed_dots: Mapping[int, dot_products.EmitDot]
    """By lanes: four products of signed bytes, added to each; empty where no instruction does that."""
    bf16_dots: Mapping[int, dot_products.EmitDot]
    """By lanes: two products of bf16 numbers, added to each; empty where no instruction does that."""
    machine: Machine
    """The core that code is made for."""
    has_tiles: bool = False
    """Whether `tdpbusd` multiplies matrix tiles."""
    has_roundings: bool = True
    """Whether `roundps` rounds f32 numbers."""

    @property
    def vector_bytes(self) -> int:
        """Bytes of the widest vector."""
        return 4 * self.lanes

    @property
    def looks_up_tables(self) -> bool:
        """Whether an instruction looks up bytes in registers."""
        return self.has_byte_permutes or self.has_byte_shuffles

    @property
    def permuted_lanes(self) -> int:
        """32-bit lanes of the widest vector that has a permute; 0 where none has."""
        return self.lanes if self.lanes in VPERMD else 0

    @property
    def permuted(self) -> tuple[str, ...]:
        """The types of elements that permutes pick from two of the widest registers."""
        return ("i8",) * self.has_byte_permutes + ("i32", "f32") * bool(self.permuted_lanes)

    @property
    def has_zmm(self) -> bool:
        """Whether one instruction rounds and converts f32 numbers in any mode, and one scales by powers of two."""
        return self.lanes == _ZMM

    @property
    def rounding_conversions(self) -> Mapping[str, Instruction]:
        """By the op that rounds: instructions that convert f32 numbers to integers and round them so."""
        if self.has_zmm:
            return VCVTPS2DQ
        # Rounding and then converting takes one instruction more, but is the same in every mode.
        return {} if self.has_roundings else CVTPS2DQ


_ZMM, _YMM, _XMM = 16, 8, 4


@cache
def instruction_set_of(target: Target) -> InstructionSet | None:
    """The instructions for `target`; None where code asks for none."""
    kind = target.kind
    if kind.is_generic:
        return None
    widest = kind.machine.vector_bits // 32
    sizes = [lanes for lanes in (_ZMM, _YMM, _XMM) if lanes <= widest]
    has_vnni = all(dot_products.VPDPBUSD[lanes].runs_on(kind.code_features) for lanes in sizes)
    return InstructionSet(
        widest,
        {lanes: dot_products.VPDPBUSD[lanes].emit if has_vnni else dot_products.byte_dot(lanes) for lanes in sizes},
        {lanes: dot_products.VPDPWSSD[lanes].emit if has_vnni else dot_products.word_dot(lanes) for lanes in sizes},
        {
            lanes: dot_products.pair_dot(lanes)
            for lanes in sizes
            if not has_vnni and dot_products.VPMADDUBSW[lanes].runs_on(kind.code_features)
        },
        not has_vnni,
        kind.has_vbmi,
        kind.name != "x86-64",
        {lanes: one.emit for lanes, one in dot_products.VPDPBSSD.items() if one.runs_on(kind.code_features)},
        {lanes: one.emit for lanes, one in dot_products.VDPBF16PS.items() if one.runs_on(kind.code_features)},
        target.machine,
        TDPBUSD.runs_on(kind.code_features),
        kind.name != "x86-64",
    )
