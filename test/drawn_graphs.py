"""Element-wise graphs drawn at random, as text, with their meaning in plain NumPy."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
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
from qdialect.passes.pattern import explain_matches
from qdialect.passes.registry import Pass
from qdialect.reference import interpreter

Array = NDArray[Any]
F32 = np.float32
SHAPE = "16x32"


@dataclass
class Listing:
    """Text and meaning side by side: `lines` compute what `values` hold."""

    lines: list[str] = field(default_factory=list[str])
    values: dict[str, Array] = field(default_factory=dict[str, Array])
    shape: str = SHAPE

    def type(self, element: str) -> str:
        return f"tensor<{self.shape}x{element}>"

    def add(self, text: str, value: Array) -> str:
        name = f"%v{len(self.values)}"
        self.lines.append(f"{name} = {text}")
        self.values[name] = value
        return name

    def constant(self, number: float | int, element: str) -> str:
        dtype: Any = {"i32": np.int32, "i64": np.int64, "f32": F32}[element]
        text = f"{float(F32(number)):.9e}" if element == "f32" else str(int(number))
        return self.add(f"arith.constant dense<{text}> : {self.type(element)}", np.asarray(number, dtype))

    def same(self, op: str, function: Callable[..., Array], element: str, *names: str) -> str:
        with np.errstate(all="ignore"):
            value = np.asarray(function(*(self.values[name] for name in names)))
        return self.add(f"{op} {', '.join(names)} : {self.type(element)}", value)

    def cast(self, op: str, name: str, source: str, target: str, value: Array) -> str:
        return self.add(f"{op} {name} : {self.type(source)} to {self.type(target)}", value)

    def choose(self, predicate: str, condition: Array, element: str, lhs: str, rhs: str, yes: str, no: str) -> str:
        kind = "cmpf" if element == "f32" else "cmpi"
        flag = self.add(f"arith.{kind} {predicate}, {lhs}, {rhs} : {self.type(element)}", condition)
        text = f"arith.select {flag}, {yes}, {no} : {self.type('i1')}, {self.type(element)}"
        return self.add(text, np.where(condition, self.values[yes], self.values[no]))

    def clamped(self, name: str, low: int, high: int, way: int) -> str:
        """An i32 value limited in one of three spellings."""
        bounds = self.constant(low, "i32"), self.constant(high, "i32")
        if way == 0:
            return self.same(
                "arith.minsi",
                np.minimum,
                "i32",
                self.same("arith.maxsi", np.maximum, "i32", name, bounds[0]),
                bounds[1],
            )
        if way == 1:
            return self.same(
                "arith.maxsi",
                np.maximum,
                "i32",
                self.same("arith.minsi", np.minimum, "i32", name, bounds[1]),
                bounds[0],
            )
        value = self.values[name]
        above = self.choose("slt", value < low, "i32", name, bounds[0], bounds[0], name)
        return self.choose("sgt", self.values[above] > high, "i32", above, bounds[1], bounds[1], above)

    def narrowed(self, name: str, element: str) -> str:
        """An i32 value cut to 8 bits of either signedness."""
        bits = self.values[name].astype(np.int8)
        narrow = self.cast("arith.trunci", name, "i32", "i8", bits)
        return narrow if element == "i8" else self.cast("tensor.bitcast", narrow, "i8", "ui8", bits.view(np.uint8))

    def function(self, arguments: str, element: str, result: str) -> str:
        body = "\n".join(self.lines)
        type_ = self.type(element)
        return f"func.func @main({arguments}) -> {type_} {{\n{body}\nreturn {result} : {type_}\n}}"


def half_away(x: Array) -> Array:
    return np.copysign(np.floor(np.abs(x.astype(np.float64)) + 0.5), x).astype(F32)


def truncated(x: Array, y: Array) -> Array:
    return np.trunc(x.astype(np.float64) / y.astype(np.float64)).astype(x.dtype)


def raised(x: Array, y: Array) -> Array:
    return -(-x // y)


def shifted_unsigned(x: Array, y: Array) -> Array:
    return (x.view(np.uint32) >> y.view(np.uint32)).view(np.int32)


INTEGER_OPS: dict[str, Callable[..., Array]] = {
    "arith.addi": np.add,
    "arith.subi": np.subtract,
    "arith.muli": np.multiply,
    "arith.andi": np.bitwise_and,
    "arith.ori": np.bitwise_or,
    "arith.xori": np.bitwise_xor,
    "arith.maxsi": np.maximum,
    "arith.minsi": np.minimum,
    "arith.divsi": truncated,
    "arith.floordivsi": np.floor_divide,
    "arith.ceildivsi": raised,
    "arith.remsi": np.fmod,
    "arith.shrsi": np.right_shift,
    "arith.shli": np.left_shift,
    "arith.shrui": shifted_unsigned,
}
FLOAT_OPS: dict[str, Callable[..., Array]] = {
    "arith.addf": np.add,
    "arith.subf": np.subtract,
    "arith.mulf": np.multiply,
    "arith.divf": np.divide,
    "arith.maximumf": np.maximum,
    "arith.minnumf": np.minimum,
}
ROUNDINGS: dict[str, Callable[[Array], Array]] = {
    "math.floor": np.floor,
    "math.ceil": np.ceil,
    "math.roundeven": np.rint,
    "math.round": half_away,
    "math.trunc": np.trunc,
    "math.absf": np.abs,
    "arith.negf": np.negative,
}


def drawn_graph(rng: np.random.Generator, source: str, element: str) -> tuple[str, Array, Array]:
    """A graph from 8 bits to 8 bits: its text, an input with every number, and the result."""
    listing = Listing()
    dtype: Any = np.uint8 if source == "ui8" else np.int8
    image = np.arange(512).reshape(16, 32).astype(dtype)
    listing.values["%x"] = image
    bits = "%x" if source == "i8" else listing.cast("tensor.bitcast", "%x", "ui8", "i8", image.view(np.int8))
    wide = "arith.extsi" if source == "i8" else "arith.extui"
    names = [listing.cast(wide, bits, "i8", "i32", image.astype(np.int32))]
    for _ in range(rng.integers(2, 7)):
        op = str(rng.choice(list(INTEGER_OPS)))
        number = int(rng.integers(1, 9) if "div" in op or "sh" in op or "rem" in op else rng.integers(-300, 300))
        constant = listing.constant(number, "i32")
        names.append(listing.same(op, INTEGER_OPS[op], "i32", str(rng.choice(names)), constant))
    lhs, rhs = (str(rng.choice(names)) for _ in range(2))
    condition = listing.values[lhs] < listing.values[rhs]
    chosen = listing.choose("slt", condition, "i32", lhs, rhs, names[-1], str(rng.choice(names)))
    f32 = listing.cast("arith.sitofp", chosen, "i32", "f32", listing.values[chosen].astype(F32))
    for _ in range(rng.integers(0, 4)):
        op = str(rng.choice(list(FLOAT_OPS)))
        f32 = listing.same(op, FLOAT_OPS[op], "f32", f32, listing.constant(rng.uniform(0.3, 3.0), "f32"))
    op = str(rng.choice(list(ROUNDINGS)))
    f32 = listing.same(op, ROUNDINGS[op], "f32", f32)
    bounds = listing.constant(-1e6, "f32"), listing.constant(1e6, "f32")
    f32 = listing.same("arith.maximumf", np.maximum, "f32", f32, bounds[0])
    f32 = listing.same("arith.minimumf", np.minimum, "f32", f32, bounds[1])
    whole = listing.cast("arith.fptosi", f32, "f32", "i32", listing.values[f32].astype(np.int32))
    result = listing.narrowed(whole, element)
    return listing.function(f"%x: {listing.type(source)}", element, result), image, listing.values[result]


def drawn_epilogue(rng: np.random.Generator, element: str) -> tuple[str, Array, Array]:
    """A matrix product and a requantization written out in one of several ways."""
    weights = rng.integers(-127, 128, (32, 24), dtype=np.int8)
    image = rng.integers(0, 256, (16, 24), dtype=np.uint8)
    listing = Listing()
    hexadecimal = weights.tobytes().hex().upper()
    zero_point, offset = int(rng.integers(0, 256)), int(rng.integers(-3000, 3000))
    accumulators = ((image.astype(np.int64) - zero_point) @ weights.T.astype(np.int64)).astype(np.int32)
    listing.lines.append(
        f'%w = "qnn.constant"() {{value = dense<"0x{hexadecimal}"> : tensor<32x24xi8>}} : () -> tensor<32x24xi8>'
    )
    listing.lines.append(
        f'%acc = "qnn.dense"(%x, %w) {{input_scale = 0.02 : f64, input_zero_point = {zero_point} : i64, '
        "weight_scales = array<f64: 0.01>, weight_zero_points = array<i64: 0>} : "
        f"(tensor<16x24xui8>, tensor<32x24xi8>) -> {listing.type('i32')}"
    )
    listing.values["%acc"] = accumulators
    moved = listing.same("arith.subi", np.subtract, "i32", "%acc", listing.constant(offset, "i32"))
    low, high = (0, 255) if element == "ui8" else (-128, 127)
    point = int(rng.integers(low, high + 1))
    form = FORMS[int(rng.integers(len(FORMS)))]
    code = form(rng, listing, moved, point)
    code = listing.clamped(code, low, high, int(rng.integers(3)))
    result = listing.narrowed(code, element)
    return listing.function("%x: tensor<16x24xui8>", element, result), image, listing.values[result]


def _to_integer(listing: Listing, name: str) -> str:
    return listing.cast("arith.fptosi", name, "f32", "i32", listing.values[name].astype(np.int32))


def _scaled(rng: np.random.Generator, listing: Listing, name: str) -> str:
    f32 = listing.cast("arith.sitofp", name, "i32", "f32", listing.values[name].astype(F32))
    return listing.same("arith.mulf", np.multiply, "f32", f32, listing.constant(rng.uniform(1e-4, 4e-3), "f32"))


def up_first(rng: np.random.Generator, listing: Listing, name: str, point: int) -> str:
    f32 = listing.same("arith.addf", np.add, "f32", _scaled(rng, listing, name), listing.constant(point + 0.5, "f32"))
    return _to_integer(listing, listing.same("math.floor", np.floor, "f32", f32))


def even_last(rng: np.random.Generator, listing: Listing, name: str, point: int) -> str:
    f32 = listing.same("math.roundeven", np.rint, "f32", _scaled(rng, listing, name))
    whole = _to_integer(listing, f32)
    return listing.same("arith.addi", np.add, "i32", whole, listing.constant(point, "i32"))


def away_first(rng: np.random.Generator, listing: Listing, name: str, point: int) -> str:
    f32 = listing.same("arith.addf", np.add, "f32", _scaled(rng, listing, name), listing.constant(point, "f32"))
    return _to_integer(listing, listing.same("math.round", half_away, "f32", f32))


def shifted(rng: np.random.Generator, listing: Listing, name: str, point: int) -> str:
    shift = int(rng.integers(38, 42))
    wide = listing.cast("arith.extsi", name, "i32", "i64", listing.values[name].astype(np.int64))
    factor, half, shift = (
        listing.constant(n, "i64") for n in (int(rng.integers(2**30, 2**31)), 2 ** (shift - 1), shift)
    )
    total = listing.same(
        "arith.addi", np.add, "i64", listing.same("arith.muli", np.multiply, "i64", wide, factor), half
    )
    down = listing.same("arith.shrsi", np.right_shift, "i64", total, shift)
    code = listing.cast("arith.trunci", down, "i64", "i32", listing.values[down].astype(np.int32))
    return listing.same("arith.addi", np.add, "i32", code, listing.constant(point, "i32"))


def shifted_away(rng: np.random.Generator, listing: Listing, name: str, point: int) -> str:
    """Ties away from zero: negative products get one half less."""
    shift = int(rng.integers(38, 42))
    wide = listing.cast("arith.extsi", name, "i32", "i64", listing.values[name].astype(np.int64))
    factor, up, down, shift, zero = (
        listing.constant(n, "i64")
        for n in (int(rng.integers(2**30, 2**31)), 2 ** (shift - 1), 2 ** (shift - 1) - 1, shift, 0)
    )
    product = listing.same("arith.muli", np.multiply, "i64", wide, factor)
    half = listing.choose("sge", listing.values[product] >= 0, "i64", product, zero, up, down)
    total = listing.same("arith.addi", np.add, "i64", product, half)
    total = listing.same("arith.shrsi", np.right_shift, "i64", total, shift)
    code = listing.cast("arith.trunci", total, "i64", "i32", listing.values[total].astype(np.int32))
    return listing.same("arith.addi", np.add, "i32", code, listing.constant(point, "i32"))


FORMS = (up_first, even_last, away_first, shifted, shifted_away)


# Small graphs for the tests of passes, and the comparison before against after.

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
    after = copied(module)
    for one in passes:
        one.run(after)
        verify(after)
    same_bits(module, after, seed=seed)
    return after


def same_bits(before: ir.Module, after: ir.Module, name: str = "", seed: int = 0) -> None:
    """Both modules give the same bits on random inputs; `name` is for the message."""
    inputs = random_inputs(before, seed)
    for wanted, got in zip(interpreter.run(before, inputs), interpreter.run(after, inputs), strict=True):
        np.testing.assert_array_equal(got, wanted, err_msg=name, strict=True)


def failures(module: ir.Module, one: Pass) -> list[str]:
    """Messages of the remarks that `one` leaves on `module`."""
    with explain_matches() as remarks:
        one.run(module)
    return [remark.message for remark in remarks]


def _random(rng: np.random.Generator, type_: ir.Type) -> Array:
    dtype, shape = NUMPY_DTYPES[element_of(type_)], shape_of(type_)
    if dtype.kind == "f" or dtype.name == "bfloat16":
        return rng.normal(size=shape).astype(dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, size=shape).astype(dtype)
    info = np.iinfo(dtype.name)
    values = rng.integers(info.min, info.max, size=shape, dtype=dtype, endpoint=True)
    if dtype.itemsize == 1 and values.size >= 256:
        values.flat[:256] = np.arange(info.min, info.max + 1)
    return values
