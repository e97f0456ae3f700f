"""Where the batch of a result is, for every op: what a rule accepts is computed for each entry alone."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from qdialect.dialect.constants import CONSTANT_OPS
from qdialect.dialect.type_constraints import NUMPY_DTYPES, element_of, shape_of
from qdialect.driver.batching import rules
from qdialect.driver.batching.network import BatchNetwork
from qdialect.driver.batching.rules import RULES, Site
from qdialect.ir._mlir import ir
from qdialect.ir.context import make_context, parse
from qdialect.lowering.qnn_to_linalg import conversions
from qdialect.lowering.qnn_to_linalg.bodies.scalar_ops import SCALAR_OPS
from qdialect.lowering.qnn_to_linalg.graph.graph import has_conversion
from qdialect.reference import interpreter
from qdialect.support.diagnostics import CompileError, ParseError

Array = NDArray[Any]
CONTEXT = make_context()
ROUND_TRIPS = sorted(
    path for path in (Path(__file__).parents[1] / "lit" / "dialect").glob("*.mlir") if "invalid" not in path.name
)
# What an entry is depends on the others, wherever the batch is.
DEPENDENT = {"dynamic_lstm"}
MAX_ELEMENTS, MAX_OPERANDS = 20_000, 4
assert rules.__name__


def operations(path: Path) -> Iterator[ir.Operation]:
    """The ops of a round-trip test that have a rule and are cheap to compute."""
    module = parse(path, CONTEXT)
    for function in module.body.operations:
        for op in function.regions[0].blocks[0]:
            elements = sum(math.prod(shape_of(value.type)) for value in (*op.operands, *op.results))
            if op.name in RULES and len(op.operands) <= MAX_OPERANDS and elements <= MAX_ELEMENTS:
                yield op.operation


def sites(op: ir.Operation) -> Iterator[Site]:
    """The op with the batch in any dimension of any of its operands."""
    shapes = [shape_of(value.type) for value in op.operands]
    for axes in product(*([None, *range(len(shape))] for shape in shapes)):
        extents = {shape[axis] for axis, shape in zip(axes, shapes, strict=True) if axis is not None}
        batch = math.gcd(*extents)
        if extents and max(extents) <= 2 * batch:
            yield Site(op, list(axes), batch, batch)


def text(op: ir.Operation, axes: Sequence[int | None], result: int) -> str:
    """The op alone in a function whose arguments and result have the batch first."""
    lines: list[str] = []
    arguments: list[str] = []
    for index, (value, axis) in enumerate(zip(op.operands, axes, strict=True)):
        shape, element = shape_of(value.type), element_of(value.type)
        front = [axis or 0, *(i for i in range(len(shape)) if i != (axis or 0))]
        argument = type_text([shape[i] for i in front] if shape else [], element)
        arguments.append(f"%a{index}: {argument}")
        lines.append(transpose(f"%o{index}", f"%a{index}", argument, np.argsort(front).tolist(), str(value.type)))
    names = ", ".join(f"%o{index}" for index in range(len(op.operands)))
    types = ", ".join(str(value.type) for value in op.operands)
    attributes = ", ".join(f"{name} = {value}" for name, value in op.attributes.items())
    type_ = str(op.results[0].type)
    lines.append(f'%r = "{op.name}"({names}) {{{attributes}}} : ({types}) -> {type_}')
    shape = shape_of(op.results[0].type)
    front = [result, *(i for i in range(len(shape)) if i != result)]
    given = type_text([shape[i] for i in front], element_of(op.results[0].type))
    lines += [transpose("%g", "%r", type_, front, given), f"return %g : {given}"]
    return f"func.func @main({', '.join(arguments)}) -> {given} {{\n{chr(10).join(lines)}\n}}"


def transpose(name: str, source: str, found: str, permutation: Sequence[int], wanted: str) -> str:
    if not len(permutation):
        permutation = [0]
    order = ", ".join(map(str, permutation))
    if "x" not in found:
        return f'{name} = "qnn.reshape"({source}) {{shape = array<i64>}} : ({found}) -> {wanted}'
    return f'{name} = "qnn.transpose"({source}) {{permutation = array<i64: {order}>}} : ({found}) -> {wanted}'


def type_text(shape: Sequence[int], element: str) -> str:
    return f"tensor<{'x'.join([*map(str, shape), element])}>"


def drawn(value: ir.BlockArgument, rng: np.random.Generator) -> Array:
    dtype = NUMPY_DTYPES[element_of(value.type)]
    shape = shape_of(value.type)
    if dtype.kind == "f":
        return np.asarray(rng.normal(size=shape), dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(dtype)
    info = np.iinfo(dtype.name)
    return rng.integers(info.min // 8, info.max // 8, shape).astype(dtype)


def check_entries(source: str, has_batch: Sequence[bool], batch: int) -> None:
    """The network of one entry gives each entry of the result, and that of two batches gives both."""
    try:
        module = parse(source, CONTEXT)
    except ParseError:
        # With padding a zero point must be constant, and here it is an argument.
        return
    network = BatchNetwork(module, batch, tuple(has_batch))
    block = module.body.operations[0].regions[0].blocks[0]
    rng = np.random.default_rng(batch)
    inputs = [drawn(argument, rng) for argument in block.arguments]
    (expected,) = interpreter.run(module, inputs)
    one, twice = network.of(1), network.of(2 * batch)
    doubled = [np.concatenate([a, a]) if has else a for a, has in zip(inputs, has_batch, strict=True)]
    np.testing.assert_array_equal(interpreter.run(twice, doubled)[0], np.concatenate([expected, expected]), source)
    for entry, wanted in enumerate(np.split(expected, batch)):
        own = [np.split(a, batch)[entry] if has else a for a, has in zip(inputs, has_batch, strict=True)]
        np.testing.assert_array_equal(interpreter.run(one, own)[0], wanted, source)


def test_every_op_that_is_lowered_has_a_rule() -> None:
    assert conversions.__name__
    known = {path.stem for path in ROUND_TRIPS}
    lowered = {f"qnn.{name}" for name in known if has_conversion(f"qnn.{name}")}
    assert lowered - set(RULES) - set(CONSTANT_OPS) == set()
    assert set(SCALAR_OPS) <= set(RULES)


def batch_of_result(site: Site) -> int | str:
    """The dimension that has it, or why there is none."""
    with site.op.context, ir.Location.unknown():
        try:
            return RULES[site.op.name](site)
        except CompileError as error:
            return error.message


@pytest.mark.parametrize("path", ROUND_TRIPS, ids=lambda path: path.stem)
def test_what_a_rule_accepts_is_computed_for_each_entry_alone(path: Path) -> None:
    accepted = tried = 0
    for op in operations(path):
        for site in sites(op):
            tried += 1
            result = batch_of_result(site)
            if isinstance(result, str):
                assert result.startswith(f"'{op.name}' op must compute each entry of a dynamic batch alone, but ")
                continue
            if any(shape_of(op.operands[index].type)[axis] > 1 for index, axis in site.grown.items()):
                # What is repeated must be constant: the arguments of this function are not.
                continue
            accepted += 1
            check_entries(text(op, site.axes, result), [axis is not None for axis in site.axes], site.batch)
    assert bool(accepted) == (bool(tried) and path.stem not in DEPENDENT), f"{accepted} of {tried} are accepted"
