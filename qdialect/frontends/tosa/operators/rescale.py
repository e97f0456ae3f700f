"""Converts RESCALE, the op that rounds: a requantization, a sum or product of quantized values, 64-bit integers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from qdialect.arithmetic import AddArithmetic, BinaryQuantization, QuantParams, Rounding, quantize_multiplier
from qdialect.arithmetic.elementwise import scale_of_sum
from qdialect.dialect import AddOp, LutOp, MulOp, RequantizeOp
from qdialect.dialect.elementwise_ops import binary_attributes
from qdialect.dialect.fields import LARGEST_SCALE, SMALLEST_SCALE, is_scale
from qdialect.dialect.type_constraints import ELEMENT_RANGES, element_of, shape_of
from qdialect.frontends.building.checks import UnsupportedError, require
from qdialect.frontends.building.op_builder import Arithmetic
from qdialect.frontends.tosa.operators.conversion import Conversion, Plan, converts, flag, mode, result_element
from qdialect.ir._mlir import ir
from qdialect.passes.quant_types import parameters_of, storage_type

# RESCALE: the one op that rounds.
#
# A multiplier is ``q * 2^-shift``, which a double holds exactly.  `qnn.requantize` gets it as a scale and takes it
# apart into q * 2^k in [2^30, 2^31) and shift + k again.  With SINGLE_ROUND both pairs give the same integer:
# ``floor((v * q + 2^(s-1)) / 2^s)`` does not change when both sides of the division are multiplied by 2^k.  The second
# nudge of DOUBLE_ROUND is 2^30 whatever k is, so that q must be in that range already, or both shifts be 31 at most. A
# multiplier below 2^-32, which quantization flushes to zero, takes every 32-bit number to less than one half, and that
# rounds to zero too.
#
# TOSA leaves open what a rescale gives whose scaled value does not fit 32 bits; here it saturates.

_MIN_SHIFT, _MAX_SHIFT, _MAX_SHIFT_OF_ONE = 2, 62, 31
_SIGN_BIT = np.arange(256, dtype=np.uint8) ^ 0x80


@dataclass(frozen=True)
class Scaling:
    """The multipliers of a rescale, one or one for each channel, and how it rounds."""

    multipliers: tuple[float, ...]
    rounding: Rounding


@dataclass(frozen=True)
class QuantizedValues:
    """Quantized values of which `qnn` knows the sign, and their zero point."""

    value: ir.Value
    zero_point: int


def scaling_of(conversion: Conversion, op: ir.Operation) -> Scaling:
    """The scaling of a ``tosa.rescale``; raises `UnsupportedError` where no requantization has it."""
    multipliers = conversion.array(op.operands[1], "multiplier").astype(np.int64).ravel()
    shifts = conversion.array(op.operands[2], "shift").astype(np.int64).ravel()
    pairs = list(zip(multipliers.tolist(), shifts.tolist(), strict=True))
    for multiplier, shift in pairs:
        require(multiplier >= 0, f"multiplier must not be negative, but got {multiplier}")
        wanted = f"in [{_MIN_SHIFT}, {_MAX_SHIFT}]"
        require(_MIN_SHIFT <= shift <= _MAX_SHIFT, f"shift must be {wanted}, but got {shift}")
    is_long = any(shift > _MAX_SHIFT_OF_ONE and multiplier != 0 for multiplier, shift in pairs)
    rounds_twice = mode(op, "rounding_mode") == "DOUBLE_ROUND" and is_long
    require(not rounds_twice or _keeps_second_nudge(pairs), "multipliers of DOUBLE_ROUND must be 2^30 or more")
    rounding = Rounding.FIXED64_DOUBLE if rounds_twice else Rounding.FIXED64_UP
    return Scaling(tuple(float(np.ldexp(multiplier, -shift)) for multiplier, shift in pairs), rounding)


def _keeps_second_nudge(pairs: list[tuple[int, int]]) -> bool:
    """Whether multipliers in [2^30, 2^31) with the shifts to them have the same second nudge."""
    headroom = [(31 - multiplier.bit_length(), shift) for multiplier, shift in pairs if multiplier > 0]
    return all(more == 0 or shift + more <= _MAX_SHIFT_OF_ONE for more, shift in headroom)


def input_values(conversion: Conversion, op: ir.Operation) -> QuantizedValues:
    """The operand of a ``tosa.rescale``; where its signless bytes are unsigned ones, less 128, as is the zero point."""
    value, is_unsigned = conversion.value(op.operands[0]), flag(op, "input_unsigned")
    zero_point = conversion.zero_point(op.operands[3], "input_zp", is_unsigned=is_unsigned)
    if not is_unsigned or element_of(value.type) == "ui8":
        return QuantizedValues(value, zero_point)
    require(element_of(value.type) == "i8", f"unsigned input must have 8 bits, but got {element_of(value.type)}")
    return QuantizedValues(_with_other_sign(conversion, value), zero_point - 128)


def _with_other_sign(conversion: Conversion, value: ir.Value) -> ir.Value:
    """Bytes less or plus 128: a signed value and an unsigned one in the same 8 bits."""
    identity: dict[str, Any] = {"input_scale": 1.0, "input_zero_point": 0, "output_scale": 1.0, "output_zero_point": 0}
    return conversion.build(LutOp, value, element="i8", table=_SIGN_BIT, **identity)


@dataclass(frozen=True)
class Target:
    """The result of a ``tosa.rescale``: element type and zero point in `qnn`, and whether to flip the sign bit."""

    element: str
    zero_point: int
    flips_sign: bool

    def finished(self, conversion: Conversion, value: ir.Value) -> ir.Value:
        """`value`, which has element type and zero point of the target, as the op's result."""
        return _with_other_sign(conversion, value) if self.flips_sign else value


def target_of(conversion: Conversion, op: ir.Operation) -> Target:
    """The target of a ``tosa.rescale``."""
    element, is_unsigned = result_element(op), flag(op, "output_unsigned")
    zero_point = conversion.zero_point(op.operands[4], "output_zp", is_unsigned=is_unsigned)
    if not is_unsigned or element == "ui8":
        return Target(element, zero_point, flips_sign=False)
    require(element == "i8", f"unsigned result must have 8 bits, but got {element}")
    return Target(element, zero_point - 128, flips_sign=True)


def plan_of(input_scale: float, scaling: Scaling, output_scale: float) -> Plan:
    """Scales with the multipliers of `scaling`: the weights' take what the two others leave.

    A double holds the quotient of scales closely enough for the 31 bits of a multiplier to come back.  Raises
    `UnsupportedError` where the scales of an interface leave no such scales.
    """
    weights = tuple(max(m, SMALLEST_SCALE) * output_scale / input_scale for m in scaling.multipliers)
    if not all(0 < weight <= LARGEST_SCALE for weight in weights):
        raise UnsupportedError(f"weight scales must be in (0, 2^30], but got {max(weights)}")
    return Plan(input_scale, weights, output_scale)


def sole_rescale(value: ir.Value) -> ir.Operation | None:
    """The rescale that alone reads `value`, where it is signed with zero point 0; None where others read it too."""
    users = [use.owner.operation for use in value.uses]
    return users[0] if len(users) == 1 and users[0].name == "tosa.rescale" else None


# Sums and products of 8-bit quantized values as TOSA writes them: rescale both to 32 bits, join, rescale back.
#
# A sum is that of `qnn.add` where the larger of the operands' multipliers is 2^19: they meet at twice the larger scale,
# with 20 more bits.  A product is that of `qnn.mul` where the operands lose their zero points and nothing else.  What
# is neither stays a sum or a product of 32-bit integers.

_LIFT = 2.0**20
_LARGER = _LIFT / 2


@dataclass(frozen=True)
class Pair:
    """Two 8-bit quantized values that meet as 32-bit integers: their rescales and multipliers, and the rescale back."""

    is_sum: bool
    """Whether they are those of `qnn.add`; else they are those of `qnn.mul`."""
    rescales: tuple[ir.Operation, ir.Operation]
    multipliers: tuple[float, float]
    scaling: Scaling

    @property
    def operands(self) -> list[ir.Value]:
        """The two values."""
        return [rescale.operands[0] for rescale in self.rescales]


def pair_of(conversion: Conversion, op: ir.Operation) -> Pair | None:
    """The sum or product of 8-bit quantized values that the ``tosa.rescale`` `op` ends; None where it ends none."""
    try:
        return _pair_of(conversion, op)
    except UnsupportedError:
        # The unsupported op reports this itself.
        return None


def _pair_of(conversion: Conversion, op: ir.Operation) -> Pair | None:
    join, scaling = op.operands[0].owner, scaling_of(conversion, op)
    ends = result_element(op) in ("i8", "ui8") and len(scaling.multipliers) == 1
    if not isinstance(join, ir.Operation | ir.OpView) or join.name not in ("tosa.add", "tosa.mul") or not ends:
        return None
    operands = list(join.operation.operands)
    lhs, rhs = (_widening(conversion, value) for value in operands[:2])
    if lhs is None or rhs is None or conversion.zero_point(op.operands[3], "input_zp") != 0:
        return None
    multipliers = scaling_of(conversion, lhs).multipliers[0], scaling_of(conversion, rhs).multipliers[0]
    is_sum = join.name == "tosa.add"
    if is_sum:
        holds = max(multipliers) == _LARGER and min(*multipliers, *scaling.multipliers) > 0
    else:
        holds = multipliers == (1.0, 1.0) and conversion.zero_point(operands[2], "shift") == 0
    return Pair(is_sum, (lhs, rhs), multipliers, scaling) if holds else None


def _widening(conversion: Conversion, value: ir.Value) -> ir.Operation | None:
    """The rescale that gives `value` from 8-bit quantized values, with one rounding and without zero point."""
    rescale = value.owner
    if not isinstance(rescale, ir.Operation | ir.OpView) or rescale.name != "tosa.rescale":
        return None
    scaling = scaling_of(conversion, rescale.operation)
    is_single = len(scaling.multipliers) == 1 and scaling.rounding is Rounding.FIXED64_UP
    if not is_single or conversion.zero_point(rescale.operation.operands[4], "output_zp") != 0:
        return None
    source = element_of(storage_type(rescale.operation.operands[0].type))
    return rescale.operation if source in ("i8", "ui8") else None


def joined_operands(conversion: Conversion, op: ir.Operation, target: Target) -> ir.Value | None:
    """The 8-bit sum or product that the rescale `op` ends; None where it ends none."""
    pair = pair_of(conversion, op)
    if pair is None:
        return None
    values, rounding = [input_values(conversion, rescale) for rescale in pair.rescales], pair.scaling.rounding
    back = pair.scaling.multipliers[0]
    if not pair.is_sum:
        scales = [back, 1.0, 1.0]
        return _joined(conversion, MulOp, values, scales, target, rounding=rounding) if is_scale(back) else None
    is_double = rounding is Rounding.FIXED64_DOUBLE
    arithmetic = AddArithmetic.SHIFTED_DOUBLE if is_double else AddArithmetic.SHIFTED_SINGLE
    scales = [conversion.scale(value) for value in (*pair.operands, op.results[0])]
    if not _has_multipliers(pair, scales):
        scales = [*(multiplier / _LARGER for multiplier in pair.multipliers), 1 / (_LARGER * back)]
    holds = all(map(is_scale, scales)) and _has_multipliers(pair, scales)
    return _joined(conversion, AddOp, values, scales, target, arithmetic=arithmetic) if holds else None


def _has_multipliers(pair: Pair, scales: Sequence[float]) -> bool:
    """Whether `qnn.add` at these scales multiplies as the rescales do: by ``2^20 * s / t`` and ``t / (2^20 * s_y)``."""
    lhs, rhs, output = (QuantParams(scale, 0) for scale in scales)
    common = scale_of_sum(lhs, rhs, output)
    wanted = (*(multiplier / _LIFT for multiplier in pair.multipliers), pair.scaling.multipliers[0])
    found = (common.lhs, common.rhs, common.output)
    return list(map(quantize_multiplier, wanted)) == list(map(quantize_multiplier, found))


def _joined(
    conversion: Conversion,
    op_class: type[AddOp | MulOp],
    values: Sequence[QuantizedValues],
    scales: Sequence[float],
    target: Target,
    **how: Any,
) -> ir.Value:
    lhs, rhs = values
    points = (lhs.zero_point, rhs.zero_point, target.zero_point)
    params = [QuantParams(scale, zero_point) for scale, zero_point in zip(scales, points, strict=True)]
    quantization = BinaryQuantization(*params, bounds=ELEMENT_RANGES[target.element])
    how |= binary_attributes(quantization)
    return conversion.build(op_class, lhs.value, rhs.value, element=target.element, **how)


# RESCALE in 64-bit arithmetic, of which every form can be written: what no requantization has.
#
# ``((value - z_i) * multiplier + nudge) >> shift``, plus z_o, clamped.  The nudge is ``2^(shift - 1)``; with
# DOUBLE_ROUND and a shift above 31 it is larger by 2^30, smaller for negative values.

_SECOND_NUDGE = 1 << 30


def is_requantization(conversion: Conversion, op: ir.Operation) -> bool:
    """Whether a ``tosa.rescale`` is a `qnn.requantize`.

    Its parameters must be constants, what it reads or writes as unsigned be bytes, and short multipliers not be rounded
    twice.
    """
    operands = list(op.operands)
    if not all(conversion.is_constant(operand) for operand in operands[1:]):
        return False
    source = element_of(storage_type(operands[0].type))
    sides = (("input_unsigned", source), ("output_unsigned", result_element(op)))
    if any(flag(op, name) and element not in ("i8", "ui8") for name, element in sides):
        return False
    multipliers, shifts = (conversion.array(operands[i], "parameters").ravel() for i in (1, 2))
    rounds_twice = mode(op, "rounding_mode") == "DOUBLE_ROUND" and bool((shifts > _MAX_SHIFT_OF_ONE).any())
    return not rounds_twice or _keeps_second_nudge(list(zip(multipliers.tolist(), shifts.tolist(), strict=True)))


def rescaled_integers(conversion: Conversion, op: ir.Operation) -> ir.Value:
    """The result of a ``tosa.rescale``."""
    data, multiplier, shift, input_zp, output_zp = op.operands
    shape, is_unsigned = shape_of(data.type), flag(op, "input_unsigned")
    s, value = Arithmetic(conversion), _wide(conversion, data, shape, is_unsigned)
    offset = s.op("arith.subi", value, _wide(conversion, input_zp, shape, is_unsigned))
    scale, amount = (_wide(conversion, operand, shape, is_unsigned=False) for operand in (multiplier, shift))
    nudge = s.op("arith.shli", conversion.filled(1, amount), s.op("arith.subi", amount, 1))
    if mode(op, "rounding_mode") == "DOUBLE_ROUND":
        nudge = s.op("arith.addi", nudge, _second_nudge(conversion, offset, amount))
    total = s.op("arith.addi", s.op("arith.muli", offset, scale), nudge)
    writes_unsigned = flag(op, "output_unsigned")
    moved = s.op("arith.addi", s.op("arith.shrsi", total, amount), _wide(conversion, output_zp, shape, writes_unsigned))
    return _narrow(s, moved, result_element(op), writes_unsigned)


def _second_nudge(conversion: Conversion, offset: ir.Value, amount: ir.Value) -> ir.Value:
    s = Arithmetic(conversion)
    signed = s.select(s.compare("lt", offset, 0), conversion.filled(-_SECOND_NUDGE, offset), _SECOND_NUDGE)
    return s.select(s.compare("gt", amount, _MAX_SHIFT_OF_ONE), signed, 0)


def _wide(conversion: Conversion, old: ir.Value, shape: tuple[int, ...], is_unsigned: bool) -> ir.Value:
    """An operand as 64-bit integers of the shape of the data; a parameter is one, or one for each channel."""
    value = conversion.value(old)
    if shape_of(value.type) != shape and not shape:
        value = conversion.reshape(value, ())
    is_unsigned = is_unsigned or element_of(value.type).startswith("u")
    wide = Arithmetic(conversion, is_unsigned).resize(conversion.without_sign(value), "i64")
    return conversion.broadcast(wide, shape)


def _narrow(s: Arithmetic, value: ir.Value, element: str, is_unsigned: bool) -> ir.Value:
    """Clamped to the range of the result, as signless bits or as an unsigned tensor."""
    bits = element.removeprefix("u")
    width = int(bits[1:])
    is_unsigned = is_unsigned or element.startswith("u")
    low, high = (0, (1 << width) - 1) if is_unsigned else (-(1 << (width - 1)), (1 << (width - 1)) - 1)
    narrow = s.resize(s.op("arith.minsi", s.op("arith.maxsi", value, low), high), bits)
    return s.convert("tensor.bitcast", narrow, element) if element.startswith("u") else narrow


@converts("tosa.rescale")
def _rescale(conversion: Conversion, op: ir.Operation) -> ir.Value:
    if not is_requantization(conversion, op):
        return rescaled_integers(conversion, op)
    scaling, values, target = scaling_of(conversion, op), input_values(conversion, op), target_of(conversion, op)
    joined = joined_operands(conversion, op, target)
    if joined is not None:
        return target.finished(conversion, joined)
    source, result = op.operands[0], op.results[0]
    plan = conversion.plans.get(source) or plan_of(conversion.scale(source), scaling, conversion.scale(result))
    rescaled = conversion.build(
        RequantizeOp,
        values.value,
        element=target.element,
        input_scale=plan.input_scale,
        weight_scales=plan.weight_scales,
        input_zero_points=(values.zero_point,),
        output_scale=plan.output_scale,
        output_zero_point=target.zero_point,
        axis=max(len(shape_of(values.value.type)) - 1, 0),
        rounding=scaling.rounding,
    )
    return target.finished(conversion, rescaled)


# A scale for every value of a function, such that the multipliers of its sums are ratios of scales.
#
# Data movement keeps a scale, a sum of quantized values fixes the ratios of three, and contractions and other rescales
# fix none: their weights' scales take what is left.  So scales spread along sums and data movement from the values
# whose types or interfaces give one, and from any value where none does.  Where two contradict each other the first
# counts.

_MOVEMENT = (
    "avg_pool2d cast clamp concat identity max_pool2d pad reduce_max reduce_min reshape reverse slice tile transpose"
)
_KEEPS_SCALE = tuple(f"tosa.{name}" for name in _MOVEMENT.split())

_Links = dict[ir.Value, list[tuple[ir.Value, float]]]


def give_scales(conversion: Conversion, function: ir.Operation) -> None:
    """Tell `conversion` the scale of every value of `function` that is linked to another or has a known one."""
    block = function.regions[0].blocks[0]
    links: _Links = {}
    for op in block.operations:
        for one, other, ratio in _linked(conversion, op.operation):
            links.setdefault(one, []).append((other, ratio))
            links.setdefault(other, []).append((one, 1 / ratio))
    known = dict(_known(function))
    for value, scale in [*known.items(), *((value, 1.0) for value in links)]:
        _spread(conversion, links, value, scale)


def _spread(conversion: Conversion, links: _Links, start: ir.Value, scale: float) -> None:
    pending = [(start, scale)]
    while pending:
        value, found = pending.pop()
        if value in conversion.scales or not is_scale(found):
            continue
        conversion.scales[value] = found
        pending += [(other, found * ratio) for other, ratio in links.get(value, ())]


def _linked(conversion: Conversion, op: ir.Operation) -> Iterator[tuple[ir.Value, ir.Value, float]]:
    """Pairs of values with the ratio of the second's scale to the first's."""
    if op.name in _KEEPS_SCALE:
        operands = list(op.operands) if op.name == "tosa.concat" else [op.operands[0]]
        for operand in operands:
            yield operand, op.results[0], 1.0
    found = pair_of(conversion, op) if op.name == "tosa.rescale" else None
    if found is not None and found.is_sum:
        (lhs, rhs), (own, other) = found.operands, found.multipliers
        yield lhs, rhs, other / own
        yield lhs, op.results[0], 1 / (own * found.scaling.multipliers[0])


def _known(function: ir.Operation) -> Iterator[tuple[ir.Value, float]]:
    block = function.regions[0].blocks[0]
    *body, last = [op.operation for op in block.operations]
    for name, values in (("arg_attrs", list(block.arguments)), ("res_attrs", list(last.operands))):
        noted = list(ir.ArrayAttr(function.attributes[name])) if name in function.attributes else []
        # Without notes there are no pairs.
        for value, attributes in zip(values, map(ir.DictAttr, noted), strict=False):
            if "qnn.scale" in attributes:
                yield value, ir.FloatAttr(attributes["qnn.scale"]).value
    for value in (*block.arguments, *(result for op in body for result in op.results)):
        parameters = parameters_of(value.type)
        if parameters is not None:
            yield value, parameters.scale
