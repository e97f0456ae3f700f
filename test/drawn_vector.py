"""Random programs of phase `vector` around the ops that the x86 step replaces, with arrays to run them on.

Each is a legal module whose result is defined; most are variants that no kernel of the compiler has.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from qdialect import targets as target
from qdialect.ir._mlir import ir, passmanager
from qdialect.ir.context import make_context, parse
from qdialect.lowering.ir.phase_pass import load_kernel_dialects
from qdialect.lowering.vector_to_x86.to_x86 import to_x86
from qdialect.lowering.x86_to_llvm.to_llvm import to_llvm
from qdialect.runtime.compiler import MachineCode
from qdialect.targets import GENERIC, TARGETS, Target

Array = NDArray[Any]
Draw = st.DrawFn


@dataclass(frozen=True)
class Program:
    """A module and the contents of the buffers of its ``@main``."""

    text: str
    arrays: list[Array]


class Main:
    """Collects the buffers and ops of ``@main``."""

    def __init__(self) -> None:
        self.arrays: list[Array] = []
        self._arguments: list[str] = []
        self._lines: list[str] = []
        self._count = 0

    def op(self, text: str) -> str:
        """Append ``%new = text``."""
        self._count += 1
        self._lines.append(f"%v{self._count} = {text}")
        return f"%v{self._count}"

    def line(self, text: str) -> None:
        """Append an op without result."""
        self._lines.append(text)

    def buffer(
        self,
        array: Array,
        sizes: Sequence[int] | None = None,
        strides: Sequence[int] | None = None,
        offset: int = 0,
        how: str = "static",
        note: str = "",
    ) -> str:
        """An argument with these contents, or a strided view of a flat one at an offset; ``name : type``.

        `how` says how the view has its offset: ``static``, ``dynamic``, or ``bytes``, as a view of another one.
        """
        self.arrays.append(array)
        name, element = f"%b{len(self.arrays)}", f"i{array.dtype.itemsize * 8}"
        shape = (array.size,) if strides else array.shape
        type_ = f"memref<{'x'.join(map(str, shape))}x{element}>"
        self._arguments.append(f"{name}: {type_}{note}")
        if not strides or sizes is None:
            return f"{name} : {type_}"
        place = str(offset)
        if how != "static":
            at = np.array([offset], np.int64)
            known, at_type = self.buffer(at).split(" : ")
            number = self.op(f"memref.load {known}[{self.index(0)}] : {at_type}")
            place = self.op(f"arith.index_cast {number} : i64 to index")
        if how == "bytes":
            rest = f"memref<{array.size - offset}x{element}>"
            name, type_ = self.op(f"memref.view {name}[{place}][] : {type_} to {rest}"), rest
            place = "0"
        shown = {"static": f", offset: {offset}" if offset else "", "dynamic": ", offset: ?", "bytes": ""}[how]
        view = f"memref<{'x'.join(map(str, sizes))}x{element}, strided<{list(strides)}{shown}>>"
        cast = f"memref.reinterpret_cast {name} to offset: [{place}], sizes: {list(sizes)}, strides: {list(strides)}"
        return f"{self.op(f'{cast} : {type_} to {view}')} : {view}"

    def index(self, value: int) -> str:
        """A constant index."""
        return self.op(f"arith.constant {value} : index")

    def read(self, buffer: str, shape: Sequence[int], start: Sequence[int], order: Sequence[int] | None = None) -> str:
        """A transfer read in bounds, along the dimensions `order` of the buffer where given."""
        name, type_ = buffer.split(" : ", 1)
        rank = len(start)
        dims = ", ".join(f"d{i}" for i in range(rank))
        map_ = f", permutation_map = affine_map<({dims}) -> ({', '.join(f'd{i}' for i in order)})>" if order else ""
        element = type_[: type_.index(",")] if "," in type_ else type_[:-1]
        element = element[element.rindex("x") + 1 :]
        padding = self.op(f"arith.constant 0 : {element}")
        inside = ", ".join(["true"] * len(shape))
        indices = ", ".join(self.index(value) for value in start)
        return self.op(
            f"vector.transfer_read {name}[{indices}], {padding} {{in_bounds = [{inside}]{map_}}} : {type_}, "
            f"{vector(shape, element)}"
        )

    def write(self, value: str, type_: str, buffer: str, start: Sequence[int], how: str = "") -> None:
        """A transfer write in bounds."""
        name, memref = buffer.split(" : ", 1)
        inside = ", ".join(["true"] * (type_.count("x")))
        indices = ", ".join(self.index(position) for position in start)
        self.line(
            f"vector.transfer_write {value}, {name}[{indices}] {{in_bounds = [{inside}]{how}}} : {type_}, {memref}"
        )

    def program(self) -> Program:
        """The module."""
        body = "\n  ".join([*self._lines, "return"])
        return Program(f"func.func @main({', '.join(self._arguments)}) {{\n  {body}\n}}", self.arrays)


def vector(shape: Sequence[int], element: str) -> str:
    """A vector type."""
    return f"vector<{'x'.join([*map(str, shape), element])}>"


def rare(draw: Draw) -> bool:
    """True for one program of ten: most have few variations, so that one alone decides."""
    return draw(st.integers(0, 9)) == 9


def generator(draw: Draw) -> np.random.Generator:
    """Numbers for buffers, from a drawn seed."""
    return np.random.default_rng(draw(st.integers(0, 2**32 - 1)))


@st.composite
def contractions(draw: Draw) -> Program:
    """Products of bytes: maps in any order, either factor first, lanes in one or both, buffers wider than the read."""
    rng, main = generator(draw), Main()
    extents = {
        "r": draw(st.integers(1, 3)),
        "v": draw(st.integers(1, 2)),
        "s": draw(st.integers(1, 2)),
        "l": 5 if rare(draw) else draw(st.sampled_from([4, 8, 16])),
        "t": draw(st.sampled_from([3, 8])) if rare(draw) else 4,
    }
    data_loops, weight_loops = ["r", "s"], ["v", "s"]
    with_lanes = draw(st.sampled_from(["weights", "weights", "data", "both"]))
    data_loops += ["l"] if with_lanes != "weights" else []
    weight_loops += ["l"] if with_lanes != "data" else []
    if draw(st.booleans()):
        weight_loops = ["r", *weight_loops]
    factors = [_shuffled(draw, loops, last="t") for loops in (data_loops, weight_loops)]
    result = _shuffled(draw, ["r", "v"], last="l")
    values = [_factor(draw, main, rng, loops, extents) for loops in factors]
    signs = ("extsi", "extsi") if rare(draw) else draw(st.sampled_from([("extui", "extsi"), ("extsi", "extui")]))
    shape = [extents[loop] for loop in result]
    sums = main.buffer(rng.integers(-(2**31), 2**31, shape, np.int32))
    start = main.read(sums, shape, [0] * len(shape))
    if draw(st.booleans()):
        # Values that were read stay as they were.
        _overwrite(draw, main, rng)
    wide: list[tuple[str, str]] = []
    for value, loops, sign in zip(values, factors, signs, strict=True):
        sizes = [extents[loop] for loop in loops]
        type_ = vector(sizes, "i32")
        wide.append((main.op(f"arith.{sign} {value} : {vector(sizes, 'i8')} to {type_}"), type_))
    order = "rvslt"
    maps = [*factors, result]
    if draw(st.booleans()):
        wide.reverse()
        maps[:2] = maps[1::-1]
    texts = ", ".join(f"affine_map<({', '.join(order)}) -> ({', '.join(loops)})>" for loops in maps)
    kinds = ", ".join('"parallel"' if loop in result else '"reduction"' for loop in order)
    found = main.op(
        f"vector.contract {{indexing_maps = [{texts}], iterator_types = [{kinds}], kind = #vector.kind<add>}} "
        f"{wide[0][0]}, {wide[1][0]}, {start} : {wide[0][1]}, {wide[1][1]} into {vector(shape, 'i32')}"
    )
    main.write(found, vector(shape, "i32"), sums, [0] * len(shape))
    return main.program()


def _shuffled(draw: Draw, loops: list[str], last: str) -> list[str]:
    """`loops` in any order, then `last`; sometimes that is anywhere too."""
    if rare(draw):
        return draw(st.permutations([*loops, last]))
    lanes = [loop for loop in loops if loop == "l"]
    return [*draw(st.permutations([loop for loop in loops if loop != "l"])), *lanes, last]


def _factor(draw: Draw, main: Main, rng: np.random.Generator, loops: Sequence[str], extents: dict[str, int]) -> str:
    """A read of bytes, from somewhere in a buffer that may have more, or along dimensions in another order."""
    shape = [extents[loop] for loop in loops]
    order = draw(st.permutations(range(len(shape)))) if rare(draw) else None
    # Of the two innermost dimensions all is read, but seldom: lanes and taps lie side by side then.
    extra = [2 if (rare(draw) if i >= len(shape) - 2 else draw(st.booleans())) else 0 for i in range(len(shape))]
    # With an order, dimension `order[i]` of the buffer is the i-th of the vector.
    sizes = [0] * len(shape)
    for i, extent in enumerate(shape):
        sizes[order[i] if order else i] = extent
    sizes = [size + more for size, more in zip(sizes, extra, strict=True)]
    start = [draw(st.integers(0, more)) for more in extra]
    if draw(st.integers(0, 3)) == 0:
        strides = [math.prod(sizes[i + 1 :]) + (7 if i == 0 else 0) for i in range(len(sizes))]
        length = 1 + sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True))
        offset, how = draw(st.integers(0, 3)), draw(st.sampled_from(["static", "dynamic", "bytes"]))
        numbers, note = rng.integers(0, 256, length + offset, np.uint8), ""
        if draw(st.booleans()):
            # Pairs from even bytes on keep the bound, others exceed it.
            numbers = np.resize(np.array([0, 127, 127, 0], np.uint8), length + offset)
            note = " {qnn.pair_sums_fit}"
        buffer = main.buffer(numbers, sizes, strides, offset, how, note)
    else:
        buffer = main.buffer(rng.integers(0, 256, sizes, np.uint8))
    return main.read(buffer, shape, start, order)


def _overwrite(draw: Draw, main: Main, rng: np.random.Generator) -> None:
    """Zeros over the start of a buffer that was read already, by an op of any kind that writes."""
    index = int(rng.integers(1, len(main.arrays) + 1))
    array = main.arrays[index - 1]
    element, shape = f"i{array.dtype.itemsize * 8}", array.shape
    type_, buffer = f"memref<{'x'.join(map(str, shape))}x{element}>", f"%b{index}"
    zero = main.op(f"arith.constant 0 : {element}")
    position = ", ".join(main.index(0) for _ in shape)
    first = ", ".join("0" for _ in shape)
    match draw(st.sampled_from(["memref", "affine", "atomic", "vector", "affine vector", "branch", "view"])):
        case "affine":
            main.line(f"affine.store {zero}, {buffer}[{first}] : {type_}")
        case "atomic":
            main.op(f"memref.atomic_rmw assign {zero}, {buffer}[{position}] : ({element}, {type_}) -> {element}")
        case "vector" | "affine vector" as kind:
            row = vector([min(shape[-1], 3)], element)
            zeros = main.op(f"arith.constant dense<0> : {row}")
            name, where = ("vector.store", position) if kind == "vector" else ("affine.vector_store", first)
            main.line(f"{name} {zeros}, {buffer}[{where}] : {type_}, {row}")
        case "branch":
            one = main.op("arith.constant true")
            main.line(f"scf.if {one} {{ affine.store {zero}, {buffer}[{first}] : {type_} }}")
        case "view":
            sizes, steps = ", ".join("1" for _ in shape), ", ".join("1" for _ in shape)
            strides = [math.prod(shape[i + 1 :]) for i in range(len(shape))]
            part = f"memref<{'x'.join('1' for _ in shape)}x{element}, strided<{strides}>>"
            shown = main.op(f"memref.subview {buffer}[{first}] [{sizes}] [{steps}] : {type_} to {part}")
            main.line(f"affine.store {zero}, {shown}[{first}] : {part}")
        case _:
            main.line(f"memref.store {zero}, {buffer}[{position}] : {type_}")


@st.composite
def gathers(draw: Draw) -> Program:
    """Entries of tables of any size, base, mask and integer type of the indices."""
    rng, main = generator(draw), Main()
    shape = draw(st.sampled_from([[1], [5], [16], [64], [65], [130], [2, 7], [2, 4, 16], [3, 1, 64], [1, 2, 16]]))
    base = draw(st.integers(1, 40)) if rare(draw) else 0
    entries = draw(st.sampled_from([300, 100])) if rare(draw) else 256
    bits = draw(st.sampled_from([8, 8, 16, 32, 32, 64]))
    cast = "index_castui" if bits == 8 else draw(st.sampled_from(["index_castui", "index_cast"]))
    table = main.buffer(rng.integers(0, 256, entries, np.uint8))
    quantized = rng.integers(0, min(entries - base, 256), shape).astype(f"int{bits}")
    indices = main.read(main.buffer(quantized), shape, [0] * len(shape))
    wide = main.op(f"arith.{cast} {indices} : {vector(shape, f'i{bits}')} to {vector(shape, 'index')}")
    mask = _mask(draw, main, rng, shape)
    rest = main.op(f"arith.constant dense<{draw(st.integers(-128, 127))}> : {vector(shape, 'i8')}")
    name, type_ = table.split(" : ")
    found = main.op(
        f"vector.gather {name}[{main.index(base)}] [{wide}], {mask}, {rest} : {type_}, {vector(shape, 'index')}, "
        f"{vector(shape, 'i1')}, {vector(shape, 'i8')} into {vector(shape, 'i8')}"
    )
    if draw(st.booleans()):
        _overwrite(draw, main, rng)
    into_table = entries == 256 and shape == [64] and draw(st.booleans())
    target = table if into_table else main.buffer(np.zeros(shape, np.uint8))
    main.write(found, vector(shape, "i8"), target, [0] * len(shape))
    return main.program()


def _mask(draw: Draw, main: Main, rng: np.random.Generator, shape: Sequence[int]) -> str:
    type_ = vector(shape, "i1")
    match draw(st.sampled_from(["false", "drawn", "corner"])) if rare(draw) else "true":
        case "drawn":
            bits = rng.integers(0, 2, shape).astype(bool).tolist()
            return main.op(f"arith.constant dense<{str(bits).lower()}> : {type_}")
        case "corner":
            sizes = [draw(st.integers(1, size)) for size in shape]
            return main.op(f"vector.constant_mask {sizes} : {type_}")
        case bit:
            return main.op(f"arith.constant dense<{bit}> : {type_}")


@st.composite
def stores(draw: Draw) -> Program:
    """Narrowed integers of any range, with limits, into rows at any offset."""
    rng, main = generator(draw), Main()
    shape = draw(st.sampled_from([[4, 16], [1, 2, 16], [3, 4, 16], [2, 3, 16], [5, 1, 16], [3, 16]]))
    shape = [2, 4, 8] if rare(draw) else shape
    narrow, wide = vector(shape, "i8"), vector(shape, "i32")
    origin = draw(st.sampled_from(["clamped", "flagged", "masked", "bytes", "limited", "any", "nearly"]))
    low, high = (0, 256) if origin == "flagged" else (-(2**31), 2**31)
    drawn = rng.integers(low, high, shape, np.int32)
    if origin != "flagged":
        drawn.reshape(-1)[:2] = 2**31 - 1, 2**31 - 50
    numbers = main.buffer(drawn)
    value = main.read(numbers, shape, [0] * len(shape))
    flag = " overflow<nuw>" if origin == "flagged" else ""
    if origin == "clamped" and draw(st.booleans()):
        value = _sum(draw, main, value, wide)
    if origin in ("clamped", "nearly", "limited"):
        bounds = {"clamped": (0, 255), "nearly": (0, 256), "limited": (3, 200)}[origin]
        for op, bound in zip(("maxsi", "minsi"), bounds, strict=True):
            limit = main.op(f"arith.constant dense<{bound}> : {wide}")
            value = main.op(f"arith.{op} {value}, {limit} : {wide}")
    if origin == "masked":
        bits = main.op(f"arith.constant dense<{draw(st.sampled_from([255, 127, 511]))}> : {wide}")
        value = main.op(f"arith.andi {value}, {bits} : {wide}")
    if origin == "bytes":
        small = main.op(f"arith.trunci {value} : {wide} to {narrow}")
        value = main.op(f"arith.{draw(st.sampled_from(['extui', 'extsi']))} {small} : {narrow} to {wide}")
    value = main.op(f"arith.trunci {value}{flag} : {wide} to {narrow}")
    limits = [["minui", "maxui"], ["maxsi"]] if rare(draw) else [[], ["maxui"], ["minui"], ["maxui", "minui"]]
    for op in draw(st.sampled_from(limits)):
        bound = _scalar(draw, main)
        spread = main.op(f"vector.broadcast {bound} : i8 to {narrow}")
        value = main.op(f"arith.{op} {value}, {spread} : {narrow}")
    sizes = [size + (rare(draw) if i >= len(shape) - 2 else draw(st.booleans())) for i, size in enumerate(shape)]
    start = [draw(st.integers(0, size - own)) for size, own in zip(sizes, shape, strict=True)]
    if draw(st.integers(0, 3)) == 0:
        strides = [math.prod(sizes[i + 1 :]) + (5 if i == 0 else 0) for i in range(len(sizes))]
        length = 1 + sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True))
        target = main.buffer(rng.integers(0, 256, length, np.uint8), sizes, strides)
    else:
        target = main.buffer(rng.integers(0, 256, sizes, np.uint8))
    main.write(value, narrow, target, start)
    return main.program()


def _sum(draw: Draw, main: Main, value: str, wide: str) -> str:
    """A sum of `value`, or of what is left of it behind a shift, that may wrap; shifted right itself."""
    before = draw(st.sampled_from([None, "shrsi", "shrui"]))
    if before is not None:
        one = main.op(f"arith.constant dense<1> : {wide}")
        value = main.op(f"arith.{before} {value}, {one} : {wide}")
    rest = main.op(f"arith.constant dense<{draw(st.sampled_from([1, 100, 255, 32767]))}> : {wide}")
    shift = main.op(f"arith.constant dense<{draw(st.sampled_from([0, 3, 7]))}> : {wide}")
    return main.op(f"arith.shrsi {main.op(f'arith.addi {value}, {rest} : {wide}')}, {shift} : {wide}")


def _scalar(draw: Draw, main: Main) -> str:
    """A byte that is known at compile time or at run time."""
    number = draw(st.integers(-128, 127))
    if draw(st.booleans()):
        return main.op(f"arith.constant {number} : i8")
    name, type_ = main.buffer(np.array([number], np.int8)).split(" : ")
    return main.op(f"memref.load {name}[{main.index(0)}] : {type_}")


@st.composite
def products(draw: Draw) -> Program:
    """Words out of products: any shift, width, addend, extension and shape."""
    rng, main = generator(draw), Main()
    shape = draw(st.sampled_from([[3, 7], [1]])) if rare(draw) else draw(st.sampled_from([[16], [2, 16], [2, 3, 4]]))
    bits = 48 if rare(draw) else 64
    extension = draw(st.sampled_from(["extsi", "extui"]))
    wide, narrow = vector(shape, f"i{bits}"), vector(shape, "i32")
    own = shape[-1:] if draw(st.booleans()) else shape
    factors: list[str] = []
    for sizes in (shape, own):
        array = rng.integers(-(2**31), 2**31, sizes, np.int32)
        array.reshape(-1)[0] = draw(st.sampled_from([-(2**31), 2**31 - 1, 0, -1]))
        value = main.read(main.buffer(array), sizes, [0] * len(sizes))
        value = main.op(f"arith.{extension} {value} : {vector(sizes, 'i32')} to {vector(sizes, f'i{bits}')}")
        if sizes != shape:
            value = main.op(f"vector.broadcast {value} : {vector(sizes, f'i{bits}')} to {wide}")
        factors.append(value)
    value = main.op(f"arith.muli {factors[0]}, {factors[1]} : {wide}")
    if extension == "extsi" or rare(draw):
        addend = main.op(f"arith.constant dense<{draw(st.sampled_from([1 << 30, 5, -(1 << 40)]))}> : {wide}")
        value = main.op(f"arith.addi {value}, {addend} : {wide}")
    right, bits_lost = ("shrsi", 31) if extension == "extsi" else ("shrui", 32)
    if rare(draw):
        right, bits_lost = draw(st.sampled_from(["shrsi", "shrui"])), draw(st.sampled_from([30, 31, 32, 8]))
    shift = main.op(f"arith.constant dense<{bits_lost}> : {wide}")
    value = main.op(f"arith.{right} {value}, {shift} : {wide}")
    element = "i16" if rare(draw) else "i32"
    value = main.op(f"arith.trunci {value} : {wide} to {vector(shape, element)}")
    if element == "i16":
        value = main.op(f"arith.extsi {value} : {vector(shape, element)} to {narrow}")
    main.write(value, narrow, main.buffer(np.zeros(shape, np.int32)), [0] * len(shape))
    return main.program()


@st.composite
def conversions(draw: Draw) -> Program:
    """Rounded numbers as integers, of any width and shape."""
    rng, main = generator(draw), Main()
    shape = draw(st.sampled_from([[16], [2, 16], [3, 5], [8], [2, 2, 16]]))
    integers = main.read(main.buffer(rng.integers(-(2**20), 2**20, shape, np.int32)), shape, [0] * len(shape))
    element = draw(st.sampled_from(["f32", "f32", "f64"]))
    type_, narrow = vector(shape, element), vector(shape, "i32")
    number = main.op(f"arith.sitofp {integers} : {narrow} to {type_}")
    scale = main.op(f"arith.constant dense<{draw(st.sampled_from(['0.25', '0.5', '0.3', '-1.5']))}> : {type_}")
    number = main.op(f"arith.mulf {number}, {scale} : {type_}")
    rounding = draw(st.sampled_from(["roundeven", "floor", "ceil", "trunc"]))
    number = main.op(f"math.{rounding} {number} : {type_}")
    found = main.op(f"arith.fptosi {number} : {type_} to {narrow}")
    main.write(found, narrow, main.buffer(np.zeros(shape, np.int32)), [0] * len(shape))
    return main.program()


# Modules written by hand at phase `vector`: lowered from there, run, and compared between targets.

VBMI = TARGETS["avx512vbmi"]
_UPSTREAM = """builtin.module(
  func.func(convert-vector-to-scf{full-unroll=true}, lower-affine, canonicalize),
  expand-strided-metadata, lower-affine, func.func(convert-scf-to-cf), convert-vector-to-llvm, memref-expand,
  convert-to-llvm{filter-dialects=arith,cf,index,math,memref,ub,vector},
  convert-func-to-llvm{use-bare-ptr-memref-call-conv}, reconcile-unrealized-casts
)"""
_FEATURES = target.host_features()
HOST_TARGETS = [one for one in TARGETS.values() if _FEATURES and not one.is_generic and one.features <= _FEATURES]
"""The targets with instructions of their own that this CPU can run; empty where it is no x86-64 one."""


def module_of(text: str) -> ir.Module:
    """The module of a text, with diagnostics that name ``vector.mlir``."""
    return parse(text, make_context(), "vector.mlir")


def x86_text(text: str, chosen: Target = VBMI) -> str:
    """The module after the x86 step for a target; no CPU is needed."""
    module = module_of(text)
    to_x86(module, chosen)
    assert module.operation.verify()
    return str(module)


def run(text: str, arrays: Sequence[Array], chosen: Target) -> list[Array]:
    """The contents of all buffers after a call of ``@main`` on copies of `arrays`, compiled for `chosen`."""
    module = module_of(text)
    to_x86(module, chosen)
    to_llvm(module)
    return _called(module, arrays)


def upstream_run(text: str, arrays: Sequence[Array]) -> list[Array]:
    """As `run`, but lowered by upstream's passes alone: no rewrite of this compiler takes part."""
    module = module_of(text)
    load_kernel_dialects(module)
    with module.context:
        passmanager.PassManager.parse(_UPSTREAM).run(module.operation)
    return _called(module, arrays)


def _called(module: ir.Module, arrays: Sequence[Array]) -> list[Array]:
    buffers = [np.array(array, order="C") for array in arrays]
    bound = MachineCode(module).bind("main", [buffer.ctypes.data for buffer in buffers], keep=buffers)
    bound.call()
    return buffers


def assert_same_on_targets(text: str, arrays: Sequence[Array], targets: Sequence[Target] = HOST_TARGETS) -> None:
    """Run upstream's code, that of the generic target and of each of `targets`, and compare all buffers bit for bit."""
    wanted = upstream_run(text, arrays)
    for chosen in (GENERIC, *targets):
        for index, (expected, found) in enumerate(zip(wanted, run(text, arrays, chosen), strict=True)):
            message = f"buffer {index} for target {chosen.name}, in\n{text}"
            np.testing.assert_array_equal(found, expected, err_msg=message)


DOT = """
func.func @main(%x: memref<3x4xi8>, %w: memref<2x16x4xi8>, %y: memref<{shape}x16xi32>) {{
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0 : i8
  %zeros = arith.constant dense<0> : vector<4xi8>
  %none = arith.constant 0 : i32
  %a = vector.transfer_read %x[%c0, %c0], %zero {{in_bounds = [true, true]}} : memref<3x4xi8>, vector<3x4xi8>
  %b = vector.transfer_read %w[%c0, %c0, %c0], %zero {{in_bounds = [true, true, true]}}
    : memref<2x16x4xi8>, vector<2x16x4xi8>
  %c = vector.transfer_read %y[%c0, %c0, %c0], %none {{in_bounds = [true, true, true]}}
    : memref<{shape}x16xi32>, vector<{shape}x16xi32>
  {store}
  %d = arith.extui %a : vector<3x4xi8> to vector<3x4xi32>
  %e = arith.extsi %b : vector<2x16x4xi8> to vector<2x16x4xi32>
  %f = vector.contract {{
    indexing_maps = [affine_map<(r, v, l, t) -> (r, t)>, affine_map<(r, v, l, t) -> (v, l, t)>,
                     affine_map<(r, v, l, t) -> ({result}, l)>],
    iterator_types = ["parallel", "parallel", "parallel", "reduction"], kind = #vector.kind<{kind}>
  }} %d, %e, %c : vector<3x4xi32>, vector<2x16x4xi32> into vector<{shape}x16xi32>
  vector.transfer_write %f, %y[%c0, %c0, %c0] {{in_bounds = [true, true, true]}}
    : vector<{shape}x16xi32>, memref<{shape}x16xi32>
  return
}}
"""
"""A product of bytes; between its reads and its extensions there may be a store."""


# On tiles of 64 lanes, whose bytes are unpacked and stored as they lie.

_TILE = [2, 2, 2, 2, 4]
_LANES = "abcde"
_LAYOUTS = [[8, 4, 32, 16, 1], [8, 4, 24, 12, 1], [32, 16, 8, 4, 1], [8, 4, 80, 16, 1], [4, 64, 16, 8, 1]]


@st.composite
def tiles(draw: Draw) -> Program:
    """Contractions of tiles of 64 lanes along taps: pixels and rows at any stride, weights in K groups or not."""
    rng, main = generator(draw), Main()
    extents = {
        "p": draw(st.integers(1, 3)),
        "k": draw(st.integers(1, 2)),
        "t": 5 if rare(draw) else draw(st.integers(1, 4)),
    }
    extents.update(zip(_LANES, _TILE, strict=True))
    lanes = [4] * 5 if rare(draw) else draw(st.sampled_from(_LAYOUTS))
    data_loops = [*draw(st.permutations("pkt")), *_LANES]
    steps = {"p": draw(st.sampled_from([64, 16, 8])), "k": draw(st.sampled_from([64, 16, 100])), "t": 8}
    steps.update(zip(_LANES, lanes, strict=True))
    data = _strided(main, rng, [extents[loop] for loop in data_loops], [steps[loop] for loop in data_loops])
    weight_loops = ["k", *_LANES, "t"]
    if rare(draw):
        weight_loops = ["k", "t", *_LANES]
    k_groups = {"k": 256 + draw(st.sampled_from([0, 64])), "t": 1}
    k_groups.update(zip(_LANES, [128, 64, 32, 16, 5 if rare(draw) else 4], strict=True))
    rest = 0 if rare(draw) else 3
    sizes = [extents[loop] for loop in weight_loops]
    weights = _strided(main, rng, sizes, [k_groups[loop] for loop in weight_loops], rest)
    result = ["p", *_LANES]
    shape = [extents[loop] for loop in result]
    sums = main.buffer(rng.integers(-1000, 1000, shape, np.int32))
    start = main.read(sums, shape, [0] * len(shape))
    wide: list[tuple[str, str]] = []
    for value, loops, sign in ((data, data_loops, "extui"), (weights, weight_loops, "extsi")):
        sizes = [extents[loop] for loop in loops]
        wide.append(
            (main.op(f"arith.{sign} {value} : {vector(sizes, 'i8')} to {vector(sizes, 'i32')}"), vector(sizes, "i32"))
        )
    order = "pkt" + _LANES
    texts = ", ".join(
        f"affine_map<({', '.join(order)}) -> ({', '.join(loops)})>" for loops in (data_loops, weight_loops, result)
    )
    kinds = ", ".join('"parallel"' if loop in result else '"reduction"' for loop in order)
    found = main.op(
        f"vector.contract {{indexing_maps = [{texts}], iterator_types = [{kinds}], kind = #vector.kind<add>}} "
        f"{wide[0][0]}, {wide[1][0]}, {start} : {wide[0][1]}, {wide[1][1]} into {vector(shape, 'i32')}"
    )
    return _stored_tiles(draw, main, rng, found, shape)


def _strided(main: Main, rng: np.random.Generator, sizes: list[int], strides: list[int], rest: int = 0) -> str:
    length = 1 + rest + sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True))
    buffer = main.buffer(rng.integers(0, 256, length, np.uint8), sizes, strides)
    return main.read(buffer, sizes, [0] * len(sizes))


def _stored_tiles(draw: Draw, main: Main, rng: np.random.Generator, sums: str, shape: list[int]) -> Program:
    """Element-wise ops on tiles, then a write of them, as bytes or as they are."""
    wide, narrow = vector(shape, "i32"), vector(shape, "i8")
    own = draw(st.sampled_from([shape, _TILE]))
    more = main.read(main.buffer(rng.integers(-500, 500, own, np.int32)), own, [0] * len(own))
    if own != shape:
        more = main.op(f"vector.broadcast {more} : {vector(own, 'i32')} to {wide}")
    sums = main.op(f"arith.{draw(st.sampled_from(['addi', 'xori']))} {sums}, {more} : {wide}")
    if draw(st.booleans()):
        main.write(sums, wide, main.buffer(np.zeros(shape, np.int32)), [0] * len(shape))
    limits = [main.op(f"arith.constant dense<{bound}> : {wide}") for bound in (0, draw(st.sampled_from([255, 300])))]
    for op, limit in zip(("maxsi", "minsi"), limits, strict=True):
        sums = main.op(f"arith.{op} {sums}, {limit} : {wide}")
    value = main.op(f"arith.trunci {sums} : {wide} to {narrow}")
    lanes = draw(st.sampled_from([layout for layout in _LAYOUTS if layout != [8, 4, 24, 12, 1]]))
    strides = [160, *lanes]
    length = 1 + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
    main.write(value, narrow, main.buffer(np.zeros(length, np.uint8), shape, strides), [0] * len(shape))
    return main.program()
