"""Kernels whose loop nests hand rows to each other: divided, with the same bits for every number."""

import re

import numpy as np
import pytest
from onnx_graphs import ModelBuilder

import qdialect
from qdialect import targets
from qdialect.frontends.onnx import import_onnx
from qdialect.ir._mlir import ir
from qdialect.lowering.ir.lowered import Phase
from qdialect.lowering.pipeline.phases import lower
from qdialect.reference import interpreter
from qdialect.runtime import compile_module
from qdialect.runtime.comparison import random_inputs
from qdialect.runtime.openmp import THREAD_LIMIT

COUNTS = (2, 3, 5)
ROWS, COLUMNS = 59, 197


def softmax(arithmetic: str, axis: int, shape: tuple[int, ...] = (ROWS, COLUMNS)) -> ir.Module:
    tensor = f"tensor<{'x'.join(map(str, shape))}xi8>"
    return qdialect.parse(f"""
func.func @main(%x: {tensor}) -> {tensor} {{
  %y = "qnn.softmax"(%x) {{
    axis = {axis} : i64, input_scale = 0.05 : f64, output_scale = 0.00390625 : f64, output_zero_point = -128 : i64,
    arithmetic = "{arithmetic}"
  }} : ({tensor}) -> {tensor}
  return %y : {tensor}
}}""")


def normalization() -> ir.Module:
    """Rows that blocks of rows do not divide."""
    b = ModelBuilder()
    ones, zeros = (b.constant(np.full(COLUMNS, value, np.float32)) for value in (1, 0))
    output = b.node("LayerNormalization", b.input("tokens", (1, ROWS, COLUMNS)), ones, zeros)
    return import_onnx(b.finish(output, dtype=np.float32))


def parts(module: ir.Module, label: str, threads: int = 2, min_cycles: int = 4000) -> list[list[int]] | None:
    """Where the loop nests of the kernel that is called for `label` are cut; None where it is not divided."""
    text = str(lower(module, targets.host(), Phase.VECTOR, threads=threads, min_cycles=min_cycles).module)
    called = re.search(rf"call @(\w+)\(.*qnn\.label = \"{re.escape(label)}\"", text)
    assert called is not None
    table = re.search(rf"@{called[1]}_parts : memref<\S+> = dense<\[(.*)\]>", text)
    if table is None:
        return None
    return [[int(number) for number in row.split(",")] for row in re.findall(r"\[([\d, ]+)\]", table[1])]


MODULES = {
    "fixed": (softmax("tflite_fixed", 1), "qnn.softmax"),
    "float": (softmax("float", 1), "qnn.softmax"),
    "table": (softmax("ort_table", 1), "qnn.softmax"),
    "heads": (softmax("ort_table", 2, (3, 19, 45)), "qnn.softmax"),
    "transposed": (softmax("float", 2, (3, 67, 38)), "qnn.softmax"),
    "normalization": (normalization(), "rows"),
}


@pytest.mark.parametrize("name", MODULES)
def test_rows_are_divided_with_the_same_bits_for_every_number_of_threads(name: str) -> None:
    module, label = MODULES[name]
    assert parts(module, label) is not None
    inputs = random_inputs(lower(module, targets.host(), Phase.QNN).inputs, 3)
    wanted = compile_module(module)(*inputs)
    assert len(np.unique(wanted)) > 5
    for threads in COUNTS:
        # At the shipped threshold, and in parts as small as there are.
        executable = compile_module(module, threads=threads, min_cycles=4000 if threads == 2 else 0)
        for _ in range(20):
            np.testing.assert_array_equal(executable(*inputs), wanted, strict=True)


def test_all_loop_nests_of_a_softmax_are_cut_at_the_same_row() -> None:
    found = parts(softmax("ort_table", 1), "qnn.softmax")
    assert found is not None
    rows = [row for row in found if row[-1] in (ROWS, ROWS // 4)]
    assert len(rows) == len(found) - 2, "the three rows behind the last four are a nest of their own, twice"
    middles = {row[len(row) // 2] * (1 if row[-1] == ROWS else 4) for row in rows}
    assert len(middles) == 1
    assert 24 <= middles.pop() <= 35


def test_rows_along_another_dimension_are_right_too() -> None:
    module = softmax("ort_table", 0)
    inputs = random_inputs(lower(module, targets.host(), Phase.QNN).inputs, 3)
    wanted = next(iter(interpreter.run(module, inputs)))
    for threads in COUNTS:
        found = compile_module(module, threads=threads, min_cycles=0)(*inputs)
        np.testing.assert_array_equal(found, wanted, strict=True)


def chain(count: int) -> ir.Module:
    """Softmaxes one after the other: all but the first are behind a barrier, where chunks are counted."""
    b = ModelBuilder()
    value = b.input("x", (1, ROWS, COLUMNS))
    for _ in range(count):
        value = b.dequantize(b.quantize(b.node("Softmax", value, axis=-1), (0.004, 0)), (0.004, 0))
        value = b.node("Transpose", value, perm=[0, 2, 1])
    return import_onnx(b.finish(value, dtype=np.float32))


@pytest.mark.parametrize("allowed", [1, 2, 3])
def test_chunks_are_taken_once_by_as_many_threads_as_there_are(allowed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    module = chain(2)
    text = str(lower(module, targets.host(), Phase.VECTOR, threads=3, min_cycles=0).module)
    assert "memref.atomic_rmw addi" in text
    inputs = random_inputs(lower(module, targets.host(), Phase.QNN).inputs, 3)
    wanted = compile_module(module)(*inputs)
    executable = compile_module(module, threads=3, min_cycles=0)
    monkeypatch.setattr(THREAD_LIMIT, "value", allowed)
    for _ in range(20):
        np.testing.assert_array_equal(executable(*inputs), wanted, strict=True)
