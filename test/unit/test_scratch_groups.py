"""Loop nests that use the same scratch memory: divided where none reads what another one wrote, together elsewhere."""

import re
from pathlib import Path

import numpy as np
import pytest
from strategy_networks import Network

import qdialect
from qdialect import targets
from qdialect.ir._mlir import ir
from qdialect.ir.context import parse
from qdialect.lowering.ir.lowered import Phase
from qdialect.lowering.ir.upstream import load_kernel_dialects
from qdialect.lowering.pipeline.phases import lower
from qdialect.lowering.threads.loop_nests import analyse
from qdialect.reference import interpreter
from qdialect.runtime import compile_module
from qdialect.runtime.comparison import random_inputs

COUNTS = (2, 3, 4, 7)
BLOCKS = 9

WHOLE = "vector.transfer_write %v, %scratch[%c0] {in_bounds = [true]} : vector<8xi32>, memref<8xi32>"
READ = """%s = vector.transfer_read %scratch[%c0], %zero {in_bounds = [true]} : memref<8xi32>, vector<8xi32>
  vector.transfer_write %s, %out[%c72] {in_bounds = [true]} : vector<8xi32>, memref<80xi32>"""


def nests(rest: str, own: str = WHOLE) -> list[tuple[int, ...]]:
    """The trip counts of the loop nests of a kernel: a loop over blocks, which does `own` first, and the `rest`."""
    module = parse("module {}")
    load_kernel_dialects(module)
    with module.context:
        module = ir.Module.parse(f"""
func.func @kernel(%x: memref<80xi32>, %out: memref<80xi32>, %scratch: memref<8xi32> {{qnn.scratch}}, %flag: i1) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c9 = arith.constant {BLOCKS} : index
  %c72 = arith.constant 72 : index
  %zero = arith.constant 0 : i32
  %v = arith.constant dense<3> : vector<8xi32>
  %half = arith.constant dense<3> : vector<4xi32>
  %mask = vector.create_mask %c4 : vector<8xi1>
  scf.for %i = %c0 to %c9 step %c1 {{
    %at = arith.muli %i, %c8 : index
    {own}
    %r = vector.transfer_read %scratch[%c0], %zero {{in_bounds = [true]}} : memref<8xi32>, vector<8xi32>
    vector.transfer_write %r, %out[%at] {{in_bounds = [true]}} : vector<8xi32>, memref<80xi32>
  }}
  {rest}
  return
}}""")
        return [nest.work.trips for nest in analyse(module.body.operations[0].operation).loop_nests]


def test_a_rest_that_reads_what_it_wrote_is_a_nest_of_its_own() -> None:
    assert nests(f"{WHOLE}\n{READ}") == [(BLOCKS,), ()]


def test_two_halves_are_a_whole() -> None:
    halves = "\n".join(
        f"vector.transfer_write %half, %scratch[%c{at}] {{in_bounds = [true]}} : vector<4xi32>, memref<8xi32>"
        for at in (0, 4)
    )
    assert nests(f"{halves}\n{READ}") == [(BLOCKS,), ()]


PARTIAL = {
    "nothing": "",
    "half": "vector.transfer_write %half, %scratch[%c0] {in_bounds = [true]} : vector<4xi32>, memref<8xi32>",
    "masked": "vector.transfer_write %v, %scratch[%c0], %mask {in_bounds = [true]} : vector<8xi32>, memref<8xi32>",
    "beyond": "vector.transfer_write %v, %scratch[%c0] {in_bounds = [false]} : vector<8xi32>, memref<8xi32>",
    "conditional": f"scf.if %flag {{ {WHOLE} }}",
    "never": f"scf.for %j = %c1 to %c1 step %c1 {{ {WHOLE} }}",
}


@pytest.mark.parametrize("name", PARTIAL)
def test_a_rest_that_may_read_what_the_loop_wrote_stays_with_it(name: str) -> None:
    assert nests(f"{PARTIAL[name]}\n{READ}") == [()]


CHANGE = """%old = vector.transfer_read %scratch[%c0], %zero {in_bounds = [true]} : memref<8xi32>, vector<8xi32>
    %new = arith.addi %old, %v : vector<8xi32>
    vector.transfer_write %new, %scratch[%c0] {in_bounds = [true]} : vector<8xi32>, memref<8xi32>"""


def test_a_loop_that_goes_on_with_what_it_wrote_stays_whole() -> None:
    assert nests(f"{WHOLE}\n{READ}", CHANGE) == [()]


def test_a_loop_that_changes_what_was_written_before_it_stays_with_that() -> None:
    changed = CHANGE.replace("%old", "%before").replace("%new", "%after")
    rest = f"{WHOLE}\nscf.for %j = %c0 to %c9 step %c1 {{ {changed} }}\n{READ}"
    assert nests(rest) == [(BLOCKS,), ()]
    assert nests(rest.replace(WHOLE, PARTIAL["half"])) == [()]


# Blocks of rows and a rest: pixels, channels, and what comes out.
REMAINDERS = [(1, 7, 35, 64, 40), (1, 5, 13, 32, 16), (1, 3, 11, 64, 17), (1, 9, 37, 144, 24)]


@pytest.mark.parametrize("shape", REMAINDERS)
def test_products_in_tiles_are_divided_though_rows_are_left(shape: tuple[int, ...], tmp_path: Path) -> None:
    *image, channels = shape
    drawn = Network(11, tuple(image))
    drawn.convolution(channels, 1)
    module = parse(drawn.text())
    chosen = targets.resolve("amxint8,portable")
    divided = lower(module, chosen, Phase.VECTOR, threads=2, min_cycles=0)
    text = str(divided.module)
    tables = re.findall(r"_parts : memref<\d+x\d+xindex> = dense<\[(\[.*\])\]>", text)
    assert any(table.count("[") > 1 for table in tables), "a rest is a nest of its own"
    # Networks of one layer have no memory of their own; that of the threads is all of it.
    assert lower(divided.module, chosen, threads=2).arena_bytes == divided.arena_bytes
    inputs = random_inputs(lower(module, chosen, Phase.QNN).inputs, 3)
    wanted = next(iter(interpreter.run(module, inputs)))
    for threads in COUNTS:
        executable = compile_module(module, target=chosen, threads=threads, min_cycles=0)
        for _ in range(5):
            np.testing.assert_array_equal(executable(*inputs), wanted, strict=True)
    path = tmp_path / "network.so"
    path.write_bytes(compile_module(module, target=chosen, threads=2, min_cycles=0).library("network"))
    np.testing.assert_array_equal(qdialect.load(path)(*inputs), wanted, strict=True)
