"""Modules of one op, compiled for every kind of CPU and compared with the reference."""

import functools
import inspect
import os
import traceback
from collections import ChainMap
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from io import BytesIO
from itertools import product
from typing import Any
from zlib import crc32

import numpy as np
import pytest
from drawn_graphs import graph
from numpy.typing import NDArray
from tolerances import assert_bits

from qdialect import targets
from qdialect.dialect import build
from qdialect.dialect.type_constraints import ELEMENT_RANGES, NUMPY_DTYPES, element_of, shape_of
from qdialect.ir._mlir import func, ir
from qdialect.ir.context import make_context
from qdialect.reference import interpreter
from qdialect.runtime import compile_module

Array = NDArray[Any]
Attributes = dict[str, Any]
EIGHT_BIT = ("ui8", "i8")
INTEGERS = ("ui8", "i8", "i16", "ui16", "i32")
ANY_ELEMENT = (*INTEGERS, "i64", "f32", "i1")
_HOST = targets.host().name
_TARGETS = dict.fromkeys((_HOST, "generic"))
WIDTHS = [
    name
    for name in ("avx512vbmi", "avx2", "sse4.1", "generic")
    if targets.TARGETS[name].features <= targets.host_features()
]
"""Of each width of vectors a target that this CPU executes; test/fuzz draws from all targets."""


def tensor(shape: Sequence[int], element: str) -> str:
    return f"tensor<{'x'.join([*map(str, shape), element])}>"


def ends(element: str) -> tuple[int, int]:
    return ELEMENT_RANGES[element]


def drawn(dtype: np.dtype[Any], shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(dtype)
    if dtype.kind == "f":
        return np.asarray(rng.normal(size=shape) * 10, dtype=dtype)
    info = np.iinfo(dtype)
    values = rng.integers(info.min, int(info.max) + 1, shape)
    # Small and large numbers alike.
    return np.asarray(values >> rng.integers(0, dtype.itemsize * 8 - 7, shape), dtype=dtype)


def numbers_of(shape: tuple[int, ...], element: str, seed: int = 0) -> Array:
    """Of the whole range of a type; f32 values around zero."""
    rng, dtype = np.random.default_rng(seed), NUMPY_DTYPES[element]
    if dtype.kind == "f":
        return rng.normal(size=shape).astype(dtype)
    low, high = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype.name).min, np.iinfo(dtype.name).max)
    return rng.integers(low, high, shape, np.int64, endpoint=True).astype(dtype)


def drawn_inputs(module: ir.Module) -> list[Array]:
    rng = np.random.default_rng(1)
    arguments = module.body.operations[0].regions[0].blocks[0].arguments
    return [drawn(NUMPY_DTYPES[element_of(one.type)], shape_of(one.type), rng) for one in arguments]


def check(module: ir.Module, *rounds: Sequence[Array]) -> None:
    """Compiled for the host, and half of many variants for any CPU too, `module` gives what the interpreter gives.

    Each of `rounds` is the inputs of a call; without any they are drawn.
    """
    inputs = rounds or [drawn_inputs(module)]
    wanted = [interpreter.run(module, arrays) for arrays in inputs]
    for name in _TARGETS if is_chosen() else [_HOST]:
        check_compiled(module, name, inputs, wanted)


def check_op(
    op: Any, types: Sequence[str], element: str, inputs: Sequence[Array] | None = None, **attributes: Any
) -> None:
    check_variants(op, types, element, [attributes], inputs)


def check_variants(
    op: Any, types: Sequence[str], element: str, variants: Sequence[Attributes], inputs: Sequence[Array] | None = None
) -> None:
    """One module with an op for each of `variants`, the attributes: compiling it takes less time than one for each."""

    def body(*operands: ir.Value) -> list[ir.Value]:
        return [build(op, *operands, element=element, **attributes).output for attributes in variants]

    check(graph(types, body), *([inputs] if inputs else []))


def quantization(source: str, result: str, scales: tuple[float, float] = (0.05, 0.03)) -> Attributes:
    return {
        "input_scale": scales[0],
        "input_zero_point": ends(source)[1],
        "output_scale": scales[1],
        "output_zero_point": ends(result)[0],
    }


TABLE = np.random.default_rng(0).permutation(256).astype(np.uint8)


def window(case: tuple[Any, ...], element: str) -> Attributes:
    _, kernel, strides, padding = case
    low, high = ends(element)
    return {"kernel": kernel, "strides": strides, "padding": padding, "output_min": low + 1, "output_max": high - 3}


def softmax(element: str, axis: int, arithmetic: str, scale: float) -> Attributes:
    output: dict[str, Any] = {"output_scale": 1 / 256, "output_zero_point": ends(element)[0]}
    return {"axis": axis, "input_scale": scale, "beta": 1.0, "arithmetic": arithmetic, **output}


# Modules of many test cases compiled as one: most of the time for a small module is the same for each compilation.
#
# `variants_together` makes one test of a test with parameters. Its variants run one after the other, and what they hand
# to `check_compiled` is compiled when all of them have run, several modules at a time. Where one is wrong, each of
# these modules is compiled alone, so that the failure names the variants that are wrong, and says how to run one alone.

Test = Callable[..., None]

# Set to the title of a variant, or to a part of it, the others are left out.
CHOSEN = "VARIANT"
# Above so many the time for each grows again.
_MODULES_OF_A_COMPILATION = 12


@dataclass(frozen=True)
class _Case:
    """A module as bytecode, what called for it, its inputs, and what it must give for them."""

    variant: str
    where: str
    bytecode: bytes
    target: str
    rounds: Sequence[Sequence[Array]]
    wanted: Sequence[Sequence[Array]]


@dataclass
class _Batch:
    """Cases of the variants of a test that are yet to be compiled, and how they failed."""

    variant: str = ""
    asked: int = 0
    cases: list[_Case] = field(default_factory=list[_Case])
    failures: dict[str, str] = field(default_factory=dict[str, str])


_batch: ContextVar[_Batch | None] = ContextVar("batch", default=None)


def check_compiled(
    module: ir.Module, target: str, rounds: Sequence[Sequence[Array]], wanted: Sequence[Sequence[Array]]
) -> None:
    """Compiled for `target`, `module` gives the outputs of `wanted` for the inputs of `rounds`, bit for bit.

    In a test of `variants_together` this is found out when all of its variants have run.
    """
    batch = _batch.get()
    if batch is None or not can_be_joined(module):
        _compare(module, target, rounds, wanted)
        return
    bytecode = BytesIO()
    module.operation.write_bytecode(bytecode)
    batch.cases.append(_Case(batch.variant, _callers(), bytecode.getvalue(), target, rounds, wanted))


def is_chosen() -> bool:
    """By chance, but always the same, of half of the questions in a test of `variants_together`; of all in another."""
    batch = _batch.get()
    if batch is None:
        return True
    batch.asked += 1
    return bool(crc32(f"{batch.variant} {batch.asked}".encode()) & 1)


def variants_together(test: Test) -> Test:
    """One test that runs every variant of a test with the marks `pytest.mark.parametrize`, below this decorator."""
    marks: list[pytest.Mark] = vars(test).pop("pytestmark")
    parameters = inspect.signature(test).parameters
    combined = [ChainMap(*parts) for parts in product(*map(_values, marks[::-1]))]
    variants = [{name: values[name] for name in parameters if name in values} for values in combined]

    @functools.wraps(test)
    def every(**fixtures: Any) -> None:
        batch = _Batch()
        chosen = [variant for variant in variants if os.environ.get(CHOSEN, "") in _title(variant)]
        if not chosen:
            pytest.skip(f"the test has no variant {os.environ[CHOSEN]!r}")
        with _collecting(batch):
            for variant in chosen:
                batch.variant = _title(variant)
                _record(batch, batch.variant, lambda variant=variant: test(**variant, **fixtures))
        for cases in _grouped(batch.cases):
            _check_together(batch, cases)
        if batch.failures:
            pytest.fail(_report(batch.failures, len(chosen)), pytrace=False)

    names = {name for mark in marks for name in _names(mark)}
    fixtures = [one for name, one in parameters.items() if name not in names]
    vars(every).pop("__wrapped__")
    vars(every)["__signature__"] = inspect.Signature(fixtures)
    return every


@contextmanager
def _collecting(batch: _Batch) -> Generator[None]:
    token = _batch.set(batch)
    try:
        yield
    finally:
        _batch.reset(token)


def _names(mark: pytest.Mark) -> list[str]:
    names: str | Sequence[str] = mark.args[0]
    return [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)


def _values(mark: pytest.Mark) -> list[dict[str, Any]]:
    """The values of the parameters of a mark by name, for each of its variants."""
    names = _names(mark)
    rows = [(row,) if isinstance(mark.args[0], str) and len(names) == 1 else tuple(row) for row in mark.args[1]]
    return [dict(zip(names, row, strict=True)) for row in rows]


def _record(batch: _Batch, variant: str, work: Callable[[], None], where: str = "") -> None:
    """Do `work`, which was asked for at `where`; how it fails is written down for `variant`."""
    try:
        work()
    except Exception:
        batch.failures.setdefault(variant, where + traceback.format_exc())


def _callers() -> str:
    """The lines of the test and its helpers that lead to `check_compiled`."""
    stack = traceback.extract_stack()[:-2]
    start = max(index for index, frame in enumerate(stack) if frame.filename == __file__)
    return "".join(traceback.format_list(stack[start + 1 :]))


def _title(values: Mapping[str, object]) -> str:
    return ", ".join(f"{name}={getattr(value, '__name__', repr(value))}" for name, value in values.items())


def _grouped(cases: Sequence[_Case]) -> Iterator[list[_Case]]:
    for target in dict.fromkeys(case.target for case in cases):
        same = [case for case in cases if case.target == target]
        for start in range(0, len(same), _MODULES_OF_A_COMPILATION):
            yield same[start : start + _MODULES_OF_A_COMPILATION]


def _check_together(batch: _Batch, cases: Sequence[_Case]) -> None:
    try:
        _check_joined(cases)
    except Exception:
        together = traceback.format_exc()
        found = len(batch.failures)
        for case in cases:
            _record(batch, case.variant, lambda case=case: _check_joined([case]), case.where)
        if len(batch.failures) == found:
            batch.failures["; ".join(case.variant for case in cases)] = f"only together:\n{together}"


def results_together(modules: Sequence[tuple[ir.Module, Sequence[Array]]]) -> list[list[Array]]:
    """Results of each module for its inputs, all compiled as one for this CPU; `can_be_joined` says which may be."""
    texts: list[bytes] = []
    for module, _ in modules:
        bytecode = BytesIO()
        module.operation.write_bytecode(bytecode)
        texts.append(bytecode.getvalue())
    with make_context() as context, ir.Location.unknown():
        joint = _joined([ir.Module.parse(text, context) for text in texts])
    found = compile_module(joint)(*(array for _, arrays in modules for array in arrays))
    results = iter(found if isinstance(found, tuple) else (found,))
    counts = [len(list(_block(module).operations)[-1].operands) for module, _ in modules]
    return [[next(results) for _ in range(count)] for count in counts]


def _check_joined(cases: Sequence[_Case]) -> None:
    with make_context() as context, ir.Location.unknown():
        module = _joined([ir.Module.parse(case.bytecode, context) for case in cases])
    rounds, wanted = (
        [list(_all_of(cases, name, number)) for number in _rounds(cases)] for name in ("rounds", "wanted")
    )
    _compare(module, cases[0].target, rounds, wanted)


def _rounds(cases: Sequence[_Case]) -> range:
    return range(max(len(case.rounds) for case in cases))


def _all_of(cases: Sequence[_Case], name: str, number: int) -> Iterator[Array]:
    """The arrays of all cases in a round; a case with fewer rounds repeats its last one."""
    for case in cases:
        rounds: Sequence[Sequence[Array]] = getattr(case, name)
        yield from rounds[min(number, len(rounds) - 1)]


def _compare(
    module: ir.Module, target: str, rounds: Sequence[Sequence[Array]], wanted: Sequence[Sequence[Array]]
) -> None:
    compiled = compile_module(module, target=target)
    for arrays, expected in zip(rounds, wanted, strict=True):
        results = compiled(*arrays)
        found = results if isinstance(results, tuple) else (results,)
        for number, (value, one) in enumerate(zip(found, expected, strict=True)):
            assert_bits(value, one, f"target {target}, output {number}")


def can_be_joined(module: ir.Module) -> bool:
    """Whether `module` is a function of one block, and says nothing of itself."""
    ops = list(module.body.operations)
    return len(ops) == 1 and not len(module.operation.attributes) and len(ops[0].regions[0].blocks) == 1


def _joined(modules: Sequence[ir.Module]) -> ir.Module:
    """One module that takes the inputs and gives the outputs of all; needs a current context and location."""
    blocks = [_block(module) for module in modules]
    returns = [list(block.operations)[-1] for block in blocks]
    types = [argument.type for block in blocks for argument in block.arguments]
    joint = ir.Module.create()
    with ir.InsertionPoint(joint.body):
        main = func.FuncOp("main", (types, [value.type for one in returns for value in one.operands]))
        target = main.add_entry_block()
    arguments = iter(target.arguments)
    results: list[ir.Value] = []
    for block, last in zip(blocks, returns, strict=True):
        for argument in block.arguments:
            argument.replace_all_uses_with(next(arguments))
        results += last.operands
        for op in list(block.operations)[:-1]:
            target.append(op)
    with ir.InsertionPoint(target):
        func.ReturnOp(results)
    return joint


def _block(module: ir.Module) -> ir.Block:
    return module.body.operations[0].regions[0].blocks[0]


def _report(failures: dict[str, str], count: int) -> str:
    test = os.environ.get("PYTEST_CURRENT_TEST", "").partition(" ")[0]
    first = next(iter(failures))
    parts = [f"{len(failures)} of {count} variants fail; one alone: {CHOSEN}={first!r} pytest {test!r}"]
    return "\n\n".join([*parts, *(f"variant [{variant}]\n{text}" for variant, text in failures.items())])
