"""Parts of networks of `tosa` ops, and a whole one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import tosa_spec
import tosa_spec_elements
import tosa_spec_windows
from compiled_ops import check_compiled
from numpy.typing import NDArray

import qdialect
from qdialect.dialect.type_constraints import dtype_of, shape_of
from qdialect.frontends.tosa import import_tosa
from qdialect.ir._mlir import ir
from qdialect.reference import interpreter

Array = NDArray[Any]

LARGER = (2**30, 11)
"""The multiplier of the larger operand of a sum: 2^19."""


def convolution(text: TosaText, kind: str, data: str, weights: Array, result: str, attributes: str, bias: Any) -> str:
    operands = [data, text.constant(weights, "int8"), text.constant(bias, "int32")]
    operands += [text.constant(-9, "int8"), text.constant(0, "int8")]
    return text.op(kind, operands, f"acc_type = i32, {attributes}", result)


def random_values(shape: Sequence[int]) -> Array:
    return np.random.default_rng(sum(shape)).integers(-127, 128, shape)


def random_pairs(count: int) -> list[tuple[int, int]]:
    rng = np.random.default_rng(count)
    shifts = rng.integers(36, 41, count).tolist()
    return list(zip(rng.integers(2**30, 2**31, count).tolist(), shifts, strict=True))


def operand(text: TosaText, name: str, multiplier: tuple[int, int], zero_point: int) -> str:
    return text.rescale(name, text.types[name].replace("i8", "i32"), [multiplier], (zero_point, 0))


def network(mode: str) -> TosaText:
    """A residual block, a mean, a matrix product as a convolution, and a table."""
    text = TosaText("tensor<1x8x8x3xi8>")
    dense = "stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>"
    stem = convolution(
        text,
        "conv2d",
        "%x0",
        random_values((8, 3, 3, 3)),
        "tensor<1x8x8x8xi32>",
        f"pad = array<i64: 1, 1, 1, 1>, {dense}",
        [5],
    )
    stem = text.rescale(stem, "tensor<1x8x8x8xi8>", random_pairs(8), (0, -9), mode)
    inner = convolution(
        text,
        "depthwise_conv2d",
        stem,
        random_values((3, 3, 8, 1)),
        "tensor<1x8x8x8xi32>",
        f"pad = array<i64: 1, 1, 1, 1>, {dense}",
        [-300],
    )
    inner = text.rescale(inner, "tensor<1x8x8x8xi8>", random_pairs(8), (0, -4), mode)
    operands = [operand(text, inner, (1518500250, 12), -4), operand(text, stem, LARGER, -9)]
    total = text.op("add", operands, "", "tensor<1x8x8x8xi32>")
    total = text.rescale(total, "tensor<1x8x8x8xi8>", [(1400000000, 50)], (0, -9), mode)
    total = text.op("clamp", [total], "min_val = -9 : i8, max_val = 127 : i8", "tensor<1x8x8x8xi8>")
    points = [text.constant(-9, "int8")] * 2
    window = "kernel = array<i64: 8, 8>, stride = array<i64: 8, 8>, pad = array<i64: 0, 0, 0, 0>"
    mean = text.op("avg_pool2d", [total, *points], f"acc_type = i32, {window}", "tensor<1x1x1x8xi8>")
    sums = convolution(
        text,
        "conv2d",
        mean,
        random_values((10, 1, 1, 8)),
        "tensor<1x1x1x10xi32>",
        f"pad = array<i64: 0, 0, 0, 0>, {dense}",
        [9],
    )
    logits = text.rescale(sums, "tensor<1x1x1x10xi8>", [(1518500250, 38)], (0, 10), mode)
    flat = text.op("reshape", [logits, text.shape(1, 10)], "", "tensor<1x10xi8>")
    entries = text.constant(np.random.default_rng(3).permutation(256) - 128, "int8")
    text.op("table", [flat, entries], "", "tensor<1x10xi8>")
    return text


# Modules of `tosa` ops, imported, against the specification's pseudo-code.

EVALUATORS = (tosa_spec_elements, tosa_spec_windows)
"""What these modules compute, `tosa_spec` knows by having imported them."""


def inputs_of(module: ir.Module, seed: int, bits: int = 32) -> list[Array]:
    """Random values; integers of 32 bits keep to `bits`."""
    rng = np.random.default_rng(seed)
    function = module.body.operations[0].operation
    types = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value).inputs
    return [_drawn(rng, dtype_of(type_), shape_of(type_), bits) for type_ in types]


def _drawn(rng: np.random.Generator, dtype: np.dtype[Any], shape: tuple[int, ...], bits: int) -> Array:
    if dtype.kind == "f":
        return (rng.normal(size=shape) * 3).astype(dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(dtype)
    width = min(dtype.itemsize * 8, bits)
    low = 0 if dtype.kind == "u" else -(2 ** (width - 1))
    return rng.integers(low, low + 2**width, shape).astype(dtype)


def check_spec(text: str, inputs: Sequence[Array] | None = None, bits: int = 32, ulps: int = 0) -> ir.Module:
    """The specification, the reference and machine code agree in every element; floats up to `ulps`.

    Returns the imported module, fused.
    """
    source = qdialect.parse(text)
    arrays = list(inputs or inputs_of(source, len(text), bits))
    wanted = tosa_spec.run(source, arrays)
    module = import_tosa(text)
    reference = interpreter.run(module, arrays)
    qdialect.PassManager.parse("fuse-qnn").run(module)
    check_compiled(module, "host", [arrays], [reference])
    for found, right in zip(reference, wanted, strict=True):
        assert found.dtype == right.dtype
        if ulps and right.dtype == np.float32:
            np.testing.assert_array_max_ulp(found, right, ulps)
        else:
            np.testing.assert_array_equal(found, right)
    return module


def check_export(module: ir.Module, inputs: Sequence[Array] | None = None) -> ir.Module:
    """As `tosa` ops `module` gives by the specification what the reference gives, and so it does read back.

    Returns the `tosa` module, which upstream verifies.
    """
    arrays = list(inputs or inputs_of(module, 5))
    wanted = interpreter.run(module, arrays)
    exported = qdialect.parse(str(module))
    qdialect.PassManager.parse("qnn-to-tosa").run(exported)
    assert exported.operation.verify()
    names = {op.operation.name for op in exported.body.operations[0].operation.regions[0].blocks[0].operations}
    assert all(name.startswith("tosa.") or name == "func.return" for name in names)
    found = tosa_spec.run(exported, arrays)
    back = interpreter.run(import_tosa(str(exported)), arrays)
    for result, again, right in zip(found, back, wanted, strict=True):
        assert result.dtype == again.dtype == right.dtype
        np.testing.assert_array_equal(result, right)
        np.testing.assert_array_equal(again, right)
    return exported


def export_notes(module: ir.Module) -> str:
    """The notes of an export that is impossible."""
    with pytest.raises(qdialect.PassError) as caught:
        qdialect.PassManager.parse("qnn-to-tosa").run(module)
    return "\n".join(note.message for diagnostic in caught.value.diagnostics for note in diagnostic.notes)


# Writes modules of `tosa` ops.

_ELEMENTS = {"bool": "i1", "int8": "i8", "int16": "i16", "int32": "i32", "float32": "f32"}


class TosaText:
    """Collects the ops of ``@main``; values are names, and `types` knows theirs."""

    def __init__(self, *arguments: str) -> None:
        self.types = {f"%x{i}": type_ for i, type_ in enumerate(arguments)}
        self._arguments = ", ".join(f"{name}: {type_}" for name, type_ in self.types.items())
        self._lines: list[str] = []

    def op(self, name: str, operands: Sequence[str], attributes: str, result: str) -> str:
        """Append ``%new = tosa.name operands {attributes}`` and return the new name."""
        new = f"%{len(self.types)}"
        types = ", ".join(self.types[operand] for operand in operands)
        text = f"{name} {', '.join(operands)} {{{attributes}}} : ({types}) -> {result}"
        self._lines.append(f"  {new} = tosa.{text}")
        self.types[new] = result
        return new

    def constant(self, values: Any, dtype: str) -> str:
        """A constant of `dtype`, of at least one dimension."""
        array: NDArray[Any] = np.atleast_1d(np.array(values, dtype=dtype))
        type_ = f"tensor<{'x'.join(map(str, array.shape))}x{_ELEMENTS[dtype]}>"
        return self._bare(f'"tosa.const"() <{{values = dense<{_elements(array)}> : {type_}}}> : () -> {type_}', type_)

    def shape(self, *extents: int) -> str:
        """A constant shape."""
        type_ = f"!tosa.shape<{len(extents)}>"
        values = f"values = dense<{list(extents)}> : tensor<{len(extents)}xindex>"
        return self._bare(f"tosa.const_shape {{{values}}} : () -> {type_}", type_)

    def shape_op(self, name: str, operands: Sequence[str], rank: int) -> str:
        """A shape that is computed."""
        types = ", ".join(self.types[operand] for operand in operands)
        return self._bare(
            f"tosa.{name} {', '.join(operands)} : ({types}) -> !tosa.shape<{rank}>", f"!tosa.shape<{rank}>"
        )

    def shape_dim(self, value: str, axis: int) -> str:
        """An extent of a tensor."""
        text = f"tosa.dim {value} {{axis = {axis} : i32}} : ({self.types[value]}) -> !tosa.shape<1>"
        return self._bare(text, "!tosa.shape<1>")

    def _bare(self, text: str, type_: str) -> str:
        new = f"%{len(self.types)}"
        self._lines.append(f"  {new} = {text}")
        self.types[new] = type_
        return new

    def rescale(
        self,
        value: str,
        result: str,
        pairs: Sequence[tuple[int, int]],
        zero_points: tuple[int, int] = (0, 0),
        mode: str = "SINGLE_ROUND",
        unsigned: tuple[bool, bool] = (False, False),
        scale32: bool = True,
    ) -> str:
        """A rescale by (multiplier, shift) for all or for each channel."""
        multipliers = self.constant([q for q, _ in pairs], "int32" if scale32 else "int16")
        shifts = self.constant([s for _, s in pairs], "int8")
        points = [
            self.constant([np.int64(point).astype(f"int{width_of(type_)}")], f"int{width_of(type_)}")
            for point, type_ in zip(zero_points, (self.types[value], result), strict=True)
        ]
        flags = {"per_channel": len(pairs) > 1, "input_unsigned": unsigned[0], "output_unsigned": unsigned[1]}
        flags["scale32"] = scale32
        text = ", ".join(f"{name} = {str(value).lower()}" for name, value in flags.items())
        operands = (value, multipliers, shifts, *points)
        return self.op("rescale", operands, f"rounding_mode = {mode}, {text}", result)

    def render(self, *results: str) -> str:
        """The module."""
        types = ", ".join(self.types[result] for result in results)
        body = "\n".join(self._lines)
        return (
            f"func.func @main({self._arguments}) -> ({types}) {{\n{body}\n  return {', '.join(results)} : {types}\n}}"
        )


def _hexadecimal(bits: int) -> str:
    return f"0x{bits:08X}"


def _elements(array: NDArray[Any]) -> str:
    """As MLIR writes them; floats by their bits, so that NaN and infinities are among them."""
    if array.dtype.kind == "f":
        array = np.vectorize(_hexadecimal, otypes=[object])(array.view(np.uint32))
    return str(array.tolist()).lower().replace("'", "")


def width_of(type_: str) -> int:
    """Bits of the elements of a tensor type."""
    return int(type_.rpartition("i")[2].rstrip(">"))
