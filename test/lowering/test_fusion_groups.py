"""Element-wise upstream ops: what they compute in the reference and compiled, and which of them share a kernel."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from compiled_ops import WIDTHS, variants_together
from compiled_ops import check as check_module
from numpy.typing import NDArray

import qdialect
from qdialect import targets
from qdialect.ir.context import parse
from qdialect.lowering.pipeline.phases import Phase, lower
from qdialect.reference import interpreter
from qdialect.runtime import compile_module
from qdialect.support.diagnostics import CompileError

Array = NDArray[Any]

SPECIAL = [0.0, -0.0, np.nan, np.inf, -np.inf, 1, -1, 2, 0.5, -0.5, 3, 4, 1e-45, -1e-45, 1e-38, 3e38, -3e38]
EDGES = [88.7, 88.8, -87, -103.9, -104, 127.5, 128, -149, -150, -1e-9, 1e-9, 9.2, -9.2, 3.9, 4.1, 0.7071, 1.4142]
UNARY = ["negf", "absf", "ceil", "floor", "trunc", "roundeven", "sqrt", "rsqrt"]
ANGLES = ["sin", "cos"]
TRANSCENDENTAL = ["exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "tanh", "erf"]
BINARY = ["addf", "subf", "mulf", "divf", "maximumf", "minimumf", "copysign", "powf"]
PREDICATES = [
    *("true", "false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt", "uge", "ult", "ule", "une"),
    "uno",
]


def name_of(op: str) -> str:
    return f"{'arith' if op in ('negf', *BINARY[:6]) else 'math'}.{op}"


def f32_values(count: int, seed: int = 0) -> Array:
    """Special numbers, numbers around zero and of every magnitude."""
    rng = np.random.default_rng(seed)
    first = np.array(SPECIAL + EDGES)
    near = rng.normal(size=count // 2) * rng.choice([1e-3, 0.1, 1, 10, 40], count // 2)
    bits = rng.integers(0, 2**32, count, dtype=np.uint32).view(np.float32)
    with np.errstate(invalid="ignore"):
        return np.concatenate([first, near, bits])[:count].astype(np.float32)


def pairs(count: int) -> list[Array]:
    """Every pair of special numbers first."""
    x, y = f32_values(count, 1), f32_values(count, 2)
    size = len(SPECIAL)
    x[: size * size], y[: size * size] = np.repeat(x[:size], size), np.tile(y[:size], size)
    return [x, y]


def check(text: str, inputs: Sequence[Array]) -> None:
    """Compiled, `text` gives what the interpreter gives: bit for bit, where no NaN stands."""
    check_module(parse(text), inputs)


def kernels(text: str) -> list[str]:
    """Labels of all kernels but those that copy between arrays and the arena."""
    labels = lower(parse(text), targets.GENERIC, Phase.LINALG).labels
    return [label for label in labels if not label.startswith(("input", "output"))]


def function(body: str, arguments: str, result: str) -> str:
    return f"func.func @main({arguments}) -> {result} {{\n{body}\nreturn %y : {result}\n}}"


@variants_together
@pytest.mark.parametrize("op", [*UNARY, *TRANSCENDENTAL, *ANGLES])
def test_functions_of_one_number(op: str) -> None:
    type_ = "tensor<4099xf32>"
    check(function(f"%y = {name_of(op)} %x : {type_}", f"%x: {type_}", type_), [f32_values(4099)])


@variants_together
@pytest.mark.parametrize("op", BINARY)
def test_functions_of_two_numbers(op: str) -> None:
    type_ = "tensor<4099xf32>"
    check(function(f"%y = {name_of(op)} %a, %b : {type_}", f"%a: {type_}, %b: {type_}", type_), pairs(4099))


@pytest.mark.parametrize("op", ["log2", "log10"])
def test_functions_in_float64_are_rounded_correctly(op: str) -> None:
    """Those that are computed in float32 are within one unit of the last place (test_float32)."""
    type_ = "tensor<4099xf32>"
    module = parse(function(f"%y = math.{op} %x : {type_}", f"%x: {type_}", type_))
    x = f32_values(4099)
    (found,) = interpreter.run(module, [x])
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(found, getattr(np, op)(x.astype(np.float64)).astype(np.float32))


def test_a_product_is_rounded_before_it_is_added() -> None:
    type_ = "tensor<4099xf32>"
    body = f"%p = arith.mulf %a, %b : {type_}\n%y = arith.subf %p, %b : {type_}"
    text = function(body, f"%a: {type_}, %b: {type_}", type_)
    a, b = (np.random.default_rng(i).normal(size=4099).astype(np.float32) for i in range(2))
    check(text, [a, b])
    fused = (a.astype(np.float64) * b - b).astype(np.float32)
    assert (fused != a * b - b).any()


@variants_together
@pytest.mark.parametrize("predicate", PREDICATES)
def test_comparisons_of_f32_values(predicate: str) -> None:
    type_ = "tensor<777xf32>"
    body = f"%c = arith.cmpf {predicate}, %a, %b : {type_}\n"
    body += f"%y = arith.select %c, %a, %b : {type_.replace('f32', 'i1')}, {type_}"
    check(function(body, f"%a: {type_}, %b: {type_}", type_), pairs(777))


INTEGER_OPS = ["addi", "subi", "muli", "andi", "ori", "xori", "maxsi", "minsi", "maxui", "minui"]


@variants_together
@pytest.mark.parametrize("op", INTEGER_OPS)
@pytest.mark.parametrize("element", ["i8", "i16", "i32", "i64"])
def test_integer_arithmetic_wraps(op: str, element: str) -> None:
    type_ = f"tensor<5x67x{element}>"
    inputs = [_integers(element, (5, 67), seed) for seed in range(2)]
    check(function(f"%y = arith.{op} %a, %b : {type_}", f"%a: {type_}, %b: {type_}", type_), inputs)


@variants_together
@pytest.mark.parametrize("predicate", ["eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"])
def test_comparisons_of_integers(predicate: str) -> None:
    type_, bit = "tensor<5x67xi8>", "tensor<5x67xi1>"
    body = f"""%c = arith.cmpi {predicate}, %a, %b : {type_}
    %s = arith.extsi %c : {bit} to tensor<5x67xi32>
    %u = arith.extui %c : {bit} to tensor<5x67xi32>
    %d = arith.cmpi {predicate}, %c, %c : {bit}
    %e = arith.addi %c, %d : {bit}
    %f = arith.uitofp %e : {bit} to tensor<5x67xf32>
    %i = arith.fptosi %f : tensor<5x67xf32> to tensor<5x67xi32>
    %t = arith.subi %s, %u : tensor<5x67xi32>
    %y = arith.addi %t, %i : tensor<5x67xi32>"""
    inputs = [_integers("i8", (5, 67), seed) for seed in range(2)]
    check(function(body, f"%a: {type_}, %b: {type_}", "tensor<5x67xi32>"), inputs)


CASTS = [
    *[("extsi", a, b) for a, b in (("i8", "i32"), ("i16", "i64"), ("i32", "i64"))],
    *[("extui", a, b) for a, b in (("i8", "i32"), ("i32", "i64"))],
    *[("trunci", a, b) for a, b in (("i32", "i8"), ("i64", "i32"), ("i16", "i8"))],
    *[(op, a, "f32") for op in ("sitofp", "uitofp") for a in ("i8", "i16", "i32", "i64")],
    ("bitcast", "i32", "f32"),
]


@variants_together
@pytest.mark.parametrize(("op", "source", "result"), CASTS)
def test_casts(op: str, source: str, result: str) -> None:
    before, after = f"tensor<3x21x{source}>", f"tensor<3x21x{result}>"
    body = f"%y = arith.{op} %x : {before} to {after}"
    check(function(body, f"%x: {before}", after), [_integers(source, (3, 21), 0)])


@variants_together
@pytest.mark.parametrize("element", ["i8", "i16", "i32", "i64"])
def test_f32_values_become_integers_towards_zero(element: str) -> None:
    before, after = "tensor<3x21xf32>", f"tensor<3x21x{element}>"
    x = np.random.default_rng(0).uniform(-127, 127, (3, 21)).astype(np.float32)
    check(function(f"%y = arith.fptosi %x : {before} to {after}", f"%x: {before}", after), [x])


def test_bits_of_unsigned_values() -> None:
    body = """%s = tensor.bitcast %x : tensor<300xui8> to tensor<300xi8>
    %w = arith.extsi %s : tensor<300xi8> to tensor<300xi32>
    %n = arith.trunci %w : tensor<300xi32> to tensor<300xi8>
    %m = arith.maxsi %n, %s : tensor<300xi8>
    %y = tensor.bitcast %m : tensor<300xi8> to tensor<300xui8>"""
    x = np.arange(300).astype(np.uint8)
    check(function(body, "%x: tensor<300xui8>", "tensor<300xui8>"), [x])


QUANTIZATION = "scales = array<f64: 0.05>, zero_points = array<i64: 3>, axis = 0 : i64"
ROUNDING = 'rounding = "half_even", scaling = "divide", nan = "zero_point"'


def test_from_values_to_values_is_one_kernel() -> None:
    text = f"""func.func @main(%a: tensor<2x5x19xui8>, %b: tensor<19xi8>) -> tensor<2x5x19xi8> {{
      %0 = "qnn.dequantize"(%a) {{{QUANTIZATION}}} : (tensor<2x5x19xui8>) -> tensor<2x5x19xf32>
      %1 = "qnn.dequantize"(%b) {{scales = array<f64: {", ".join(str(0.01 * i) for i in range(1, 20))}>,
        zero_points = array<i64: 3>, axis = 0 : i64}} : (tensor<19xi8>) -> tensor<19xf32>
      %2 = "qnn.broadcast"(%1) {{shape = array<i64: 2, 5, 19>}} : (tensor<19xf32>) -> tensor<2x5x19xf32>
      %3 = math.exp %0 : tensor<2x5x19xf32>
      %4 = arith.mulf %3, %2 : tensor<2x5x19xf32>
      %5 = arith.addf %4, %3 : tensor<2x5x19xf32>
      %6 = arith.constant dense<-2.5> : tensor<2x5x19xf32>
      %7 = arith.maximumf %5, %6 : tensor<2x5x19xf32>
      %8 = "qnn.quantize"(%7) {{{QUANTIZATION}, {ROUNDING}}} : (tensor<2x5x19xf32>) -> tensor<2x5x19xi8>
      return %8 : tensor<2x5x19xi8>
    }}"""
    assert kernels(text) == ["qnn.quantize"]
    check(text, [_integers("ui8", (2, 5, 19), 0), _integers("i8", (19,), 1)])


def test_a_value_with_users_in_two_kernels_is_stored_once() -> None:
    text = """func.func @main(%x: tensor<3x19xf32>) -> (tensor<3x19xf32>, tensor<3x19xf32>) {
      %0 = math.exp %x : tensor<3x19xf32>
      %1 = arith.addf %0, %x : tensor<3x19xf32>
      %2 = arith.mulf %0, %x : tensor<3x19xf32>
      return %1, %2 : tensor<3x19xf32>, tensor<3x19xf32>
    }"""
    assert kernels(text) == ["math.exp", "arith.addf", "arith.mulf"]
    check(text, [f32_values(57).reshape(3, 19)])


def test_constants_are_read_where_they_lie() -> None:
    text = """func.func @main(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
      %r = "qnn.constant"() {value = dense<[1.0, 2.0, 3.5]> : tensor<3xf32>} : () -> tensor<3xf32>
      %b = "qnn.broadcast"(%r) {shape = array<i64: 2, 3>} : (tensor<3xf32>) -> tensor<2x3xf32>
      %c = arith.constant dense<[[1.0], [-4.0]]> : tensor<2x1xf32>
      %d = "qnn.broadcast"(%c) {shape = array<i64: 2, 3>} : (tensor<2x1xf32>) -> tensor<2x3xf32>
      %i = arith.constant dense<0x7F800000> : tensor<2x3xf32>
      %0 = arith.mulf %x, %b : tensor<2x3xf32>
      %1 = arith.subf %0, %d : tensor<2x3xf32>
      %2 = arith.minimumf %1, %i : tensor<2x3xf32>
      %3 = math.absf %2 : tensor<2x3xf32>
      return %3 : tensor<2x3xf32>
    }"""
    assert kernels(text) == ["math.absf"]
    check(text, [f32_values(6).reshape(2, 3)])


@variants_together
@pytest.mark.parametrize("element", ["i8", "i32", "i64", "f32"])
@pytest.mark.parametrize(("axis", "shapes"), [(0, ((2, 19), (1, 19))), (1, ((3, 7), (3, 64), (3, 1)))])
def test_concatenation(element: str, axis: int, shapes: tuple[tuple[int, int], ...]) -> None:
    types = [f"tensor<{rows}x{columns}x{element}>" for rows, columns in shapes]
    joined = [shapes[0][0], shapes[0][1]]
    joined[axis] = sum(shape[axis] for shape in shapes)
    result = f"tensor<{joined[0]}x{joined[1]}x{element}>"
    names = ", ".join(f"%x{i}" for i in range(len(types)))
    arguments = ", ".join(f"%x{i}: {type_}" for i, type_ in enumerate(types))
    body = f"%y = tensor.concat dim({axis}) {names} : ({', '.join(types)}) -> {result}"
    inputs = [f32_values(r * c, i).reshape(r, c) if element == "f32" else _integers(element, (r, c), i)
              for i, (r, c) in enumerate(shapes)]  # fmt: skip
    check(function(body, arguments, result), inputs)


def test_arrays_of_any_width_are_read_and_written_in_place() -> None:
    text = """func.func @main(%x: tensor<5x19xf32>) -> tensor<5x19xf32> {
      %0 = arith.addf %x, %x : tensor<5x19xf32>
      return %0 : tensor<5x19xf32>
    }"""
    assert lower(parse(text), targets.GENERIC, Phase.LINALG).labels == ("arith.addf",)
    check(text, [f32_values(95).reshape(5, 19)])


REFUSED = {
    "%y = math.tan %x : tensor<4xf32>": "'math.tan' op has no lowering",
    "%c = arith.constant true\n%y = arith.select %c, %x, %x : tensor<4xf32>": (
        "'arith.select' op has a value of type i1, which no kernel computes"
    ),
    "%d = arith.extf %x : tensor<4xf32> to tensor<4xf64>\n%s = arith.addf %d, %d : tensor<4xf64>\n"
    "%y = arith.truncf %s : tensor<4xf64> to tensor<4xf32>": (
        "'arith.extf' op has a value of type tensor<4xf64>, which no kernel computes"
    ),
}


@pytest.mark.parametrize("body", REFUSED)
def test_ops_that_no_kernel_computes_are_refused(body: str) -> None:
    with pytest.raises(CompileError) as caught:
        compile_module(parse(function(body, "%x: tensor<4xf32>", "tensor<4xf32>")))
    assert REFUSED[body] in caught.value.render()


def _integers(element: str, shape: tuple[int, ...], seed: int) -> Array:
    dtype = np.dtype("u1") if element == "ui8" else np.dtype(f"i{int(element[1:]) // 8}")
    info = np.iinfo(dtype)
    quantized = np.random.default_rng(seed).integers(info.min, info.max, shape, dtype=dtype, endpoint=True)
    quantized.flat[:2] = info.min, info.max
    return quantized


# Functions of single numbers, in a kernel of many elements: vectors of no dimension are computed too.

FUNCTIONS = [
    *(f"math.{name}" for name in ("absf", "ceil", "floor", "trunc", "roundeven", "sqrt", "rsqrt", "erf", "tanh")),
    *(f"math.{name}" for name in ("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos")),
    *("arith.negf", "math.copysign", "math.powf"),
    *(f"arith.{name}" for name in ("addf", "subf", "mulf", "divf", "maximumf", "minimumf")),
]
OF_TWO = {"math.copysign", "math.powf", *FUNCTIONS[-6:]}
_SHAPE, _NUMBER = "tensor<3x17xf32>", "tensor<1x1xf32>"


def functions_of_a_number() -> str:
    """Each function of one number, which is broadcast, added to elements; the sum is quantized."""
    lines: list[str] = []
    for i, name in enumerate(FUNCTIONS):
        operands = ", ".join(["%b"] * (2 if name in OF_TWO else 1))
        lines += [f"%y{i} = {name} {operands} : {_SHAPE}", f"%s{i} = arith.addf %x, %y{i} : {_SHAPE}"]
        how = '{rounding = "half_even", scales = array<f64: 0.03>, zero_points = array<i64: 3>}'
        lines.append(f'%q{i} = "qnn.quantize"(%s{i}) {how} : ({_SHAPE}) -> tensor<3x17xi8>')
    results = ", ".join(f"%q{i}" for i in range(len(FUNCTIONS)))
    types = ", ".join(["tensor<3x17xi8>"] * len(FUNCTIONS))
    return f"""func.func @main(%n: {_NUMBER}, %x: {_SHAPE}) -> ({types}) {{
      %b = "qnn.broadcast"(%n) {{shape = array<i64: 3, 17>}} : ({_NUMBER}) -> {_SHAPE}
      {chr(10).join(lines)}
      return {results} : {types}
    }}"""


def quantized_number() -> str:
    """One quantized number, whose exponential is quantized for each element."""
    how = "scales = array<f64: 0.007>, zero_points = array<i64: 0>"
    return f"""func.func @main(%n: tensor<1xi8>) -> tensor<2xi8> {{
      %d = "qnn.dequantize"(%n) {{{how}}} : (tensor<1xi8>) -> tensor<1xf32>
      %b = "qnn.broadcast"(%d) {{shape = array<i64: 2>}} : (tensor<1xf32>) -> tensor<2xf32>
      %e = math.exp %b : tensor<2xf32>
      %q = "qnn.quantize"(%e) {{{how}}} : (tensor<2xf32>) -> tensor<2xi8>
      return %q : tensor<2xi8>
    }}"""


@pytest.mark.parametrize("name", WIDTHS)
def test_functions_of_a_number(name: str) -> None:
    module = qdialect.parse(functions_of_a_number())
    number = np.array([[1.75]], np.float32)
    x = np.random.default_rng(0).normal(size=(3, 17)).astype(np.float32)
    found: Any = compile_module(module, target=targets.TARGETS[name])(number, x)
    for one, wanted in zip(found, interpreter.run(module, [number, x]), strict=True):
        np.testing.assert_array_equal(one, wanted)


@pytest.mark.parametrize("name", WIDTHS)
def test_a_quantized_number(name: str) -> None:
    module, number = qdialect.parse(quantized_number()), np.array([-5], np.int8)
    np.testing.assert_array_equal(
        compile_module(module, target=targets.TARGETS[name])(number), interpreter.run(module, [number])[0]
    )
