"""Small graphs for the tests of passes, and the comparison before against after."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import count
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from qdialect.dialect import Conv2DOp, build
from qdialect.dialect.constants import constant
from qdialect.dialect.type_constraints import ELEMENT_RANGES, NUMPY_DTYPES, element_of, shape_of
from qdialect.ir._mlir import func, ir
from qdialect.ir.context import make_context, parse, verify
from qdialect.passes.pass_base import Pass
from qdialect.passes.pattern import explain_matches
from qdialect.reference import interpreter

Array = NDArray[Any]
Results = ir.Value | list[ir.Value]
Window = tuple[tuple[int, ...], tuple[int, ...], tuple[int, int], tuple[int, int, int, int], tuple[int, int], int]
"""Shapes of data and weights, strides, padding, dilation and groups of a convolution."""
Body = (
    Callable[[ir.Value], Results]
    | Callable[[ir.Value, ir.Value], Results]
    | Callable[[ir.Value, ir.Value, ir.Value], Results]
)


_NUMBERS = count()
# A context keeps every constant that it has seen.
_GRAPHS_OF_A_CONTEXT = 50


@lru_cache(maxsize=1)
def _context(_: int) -> ir.Context:
    """A context that several graphs share: to make one and to end it takes longer than to test a pattern."""
    return make_context()


def graph(inputs: Sequence[str], body: Body) -> ir.Module:
    """A module whose @main takes tensors of the types `inputs`; `body` gets its arguments and returns its results."""
    with _context(next(_NUMBERS) // _GRAPHS_OF_A_CONTEXT), ir.Location.unknown():
        module = ir.Module.create()
        types = [ir.Type.parse(text) for text in inputs]
        with ir.InsertionPoint(module.body):
            main = func.FuncOp("main", ir.FunctionType.get(types, []))
            block = main.add_entry_block()
        with ir.InsertionPoint(block):
            found = cast("Callable[..., Results]", body)(*block.arguments)
            results = [found] if isinstance(found, ir.Value) else found
            func.ReturnOp(results)
        result_types = [value.type for value in results]
        main.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(types, result_types))
        verify(module)
        return module


def convolution(
    window: Window, data: str, values: NDArray[np.uint8] | NDArray[np.int8], points: tuple[int, ...]
) -> ir.Module:
    """A convolution with constant `values` whose zero points are `points`, over data of the type `data`."""
    shape, _, strides, padding, dilation, groups = window

    def body(operand: ir.Value) -> ir.Value:
        return build(
            Conv2DOp,
            operand,
            constant(values),
            element="i32",
            input_scale=0.5,
            input_zero_point=ELEMENT_RANGES[data][1],
            weight_scales=(0.25,),
            weight_zero_points=points,
            strides=strides,
            padding=padding,
            dilation=dilation,
            groups=groups,
        ).output

    return graph([f"tensor<{'x'.join(map(str, shape))}x{data}>"], body)


def copied(module: ir.Module) -> ir.Module:
    return parse(str(module))


def op_names(module: ir.Module) -> list[str]:
    """Names of the ops of @main in order, without constants and the return."""
    block = module.body.operations[0].regions[0].blocks[0]
    names = [op.operation.name for op in block.operations]
    return [name for name in names if name not in ("qnn.constant", "arith.constant", "func.return")]


def ops_of(module: ir.Module, name: str) -> list[Any]:
    """The ops of @main with a name; the bindings free them with `module`, which the caller holds."""
    block = module.body.operations[0].regions[0].blocks[0]
    return [op for op in block.operations if op.operation.name == name]


def random_inputs(module: ir.Module, seed: int = 0) -> list[Array]:
    """Quantized values over the whole range; a tensor of at least 256 quantized values has every one of them."""
    rng = np.random.default_rng(seed)
    arguments = module.body.operations[0].regions[0].blocks[0].arguments
    return [_random(rng, argument.type) for argument in arguments]


def run_both(module: ir.Module, *passes: Pass, seed: int = 0) -> ir.Module:
    """`module` after `passes`, which must be valid and give the same bits as before on random inputs."""
    inputs = random_inputs(module, seed)
    expected = interpreter.run(module, inputs)
    after = copied(module)
    for one in passes:
        one.run(after)
        verify(after)
    found = interpreter.run(after, inputs)
    for wanted, got in zip(expected, found, strict=True):
        assert wanted.dtype == got.dtype
        np.testing.assert_array_equal(wanted, got)
    return after


def failures(module: ir.Module, one: Pass) -> list[str]:
    """Messages of the remarks that `one` leaves on `module`."""
    with explain_matches() as remarks:
        one.run(module)
    return [remark.message for remark in remarks]


def _random(rng: np.random.Generator, type_: ir.Type) -> Array:
    dtype, shape = NUMPY_DTYPES[element_of(type_)], shape_of(type_)
    if dtype.kind == "f":
        return rng.normal(size=shape).astype(dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, size=shape).astype(dtype)
    info = np.iinfo(dtype.name)
    values = rng.integers(info.min, info.max, size=shape, dtype=dtype, endpoint=True)
    if dtype.itemsize == 1 and values.size >= 256:
        values.flat[:256] = np.arange(info.min, info.max + 1)
    return values
