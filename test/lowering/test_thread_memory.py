"""Memory that threads share: barriers, scratch memory, reads and writes of each part."""

import ctypes
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bounds import HANG
from c_programs import STRICT, ran, tool
from drawn_networks import Network
from threaded_networks import network

import qdialect
from qdialect import targets
from qdialect.ir._mlir import ir
from qdialect.ir.context import parse
from qdialect.lowering.ir.lowered import Phase
from qdialect.lowering.ir.phase_pass import load_kernel_dialects
from qdialect.lowering.pipeline.phases import lower
from qdialect.lowering.threads import divided_network
from qdialect.lowering.threads.loop_nests import analyse
from qdialect.lowering.threads.schedule import ScheduledCall, schedule
from qdialect.reference import interpreter
from qdialect.runtime import compile_module, openmp
from qdialect.runtime.comparison import random_inputs

KINDS = ("convolutional", "transformer")
MIN_CYCLES = 500
"""Kernels of the networks here are divided from there on, and few of them into chunks."""


def softmaxes(between: str = "") -> ir.Module:
    """Two softmaxes along rows; the second one is of `%b`, which `between` makes of `%a`, where it is given."""
    softmax = """{{axis = 1 : i64, input_scale = {scale} : f64, output_scale = 0.00390625 : f64,
    output_zero_point = -128 : i64, arithmetic = "float"}} : (tensor<128x128xi8>) -> tensor<128x128xi8>"""
    return qdialect.parse(f"""
func.func @main(%x: tensor<128x128xi8>) -> tensor<128x128xi8> {{
  %a = "qnn.softmax"(%x) {softmax.format(scale=0.05)}
  {between}
  %y = "qnn.softmax"({"%b" if between else "%a"}) {softmax.format(scale=2.0)}
  return %y : tensor<128x128xi8>
}}""")


TURN = '%b = "qnn.transpose"(%a) {permutation = array<i64: 1, 0>} : (tensor<128x128xi8>) -> tensor<128x128xi8>'


def barriers(module: ir.Module, threads: int = 2, min_cycles: int = MIN_CYCLES) -> int:
    text = str(
        lower(module, targets.resolve("avx512vbmi"), Phase.VECTOR, threads=threads, min_cycles=min_cycles).module
    )
    assert "omp.parallel" in text
    return text.count("omp.barrier")


def test_a_part_that_reads_what_others_wrote_waits() -> None:
    assert barriers(softmaxes(TURN)) > barriers(softmaxes()) > 0


def test_calls_in_chunks_wait_as_any_thread_may_take_them() -> None:
    text = str(lower(softmaxes(), targets.resolve("avx512vbmi"), Phase.VECTOR, threads=2, min_cycles=1).module)
    assert "scf.while" in text
    assert barriers(softmaxes(), min_cycles=1) > 0


# An OpenMP runtime whose threads take turns in a given order, each from one barrier to the next: what one does is done
# before the next one begins, so that results that lack a barrier are wrong in one of the two orders.
_SOURCE = r"""
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

enum { STACK = 1 << 20, MOST = 64 };

/* The network calls these; who runs it reads how many turns there were. */
void GOMP_parallel(void (*task)(void *), void *data, unsigned count, unsigned flags);
int omp_get_thread_num(void);
int omp_get_num_threads(void);
extern int turns;
int turns = 0;

static ucontext_t scheduler, fibres[MOST];
static void (*entry)(void *);
static void *argument;
static int threads = 1, left, running, has_begun[MOST], is_done[MOST];

int omp_get_thread_num(void) { return running; }

/* Asked once at the start of the region and once in every barrier, which no thread passes before the others are there:
   that is so when its turn is over, and a barrier of no threads waits for none. */
int omp_get_num_threads(void) {
  if (!has_begun[running]) {
    has_begun[running] = 1;
    return threads;
  }
  swapcontext(&fibres[running], &scheduler);
  return 0;
}

static void run(void) {
  entry(argument);
  is_done[running] = 1;
  swapcontext(&fibres[running], &scheduler);
}

void GOMP_parallel(void (*task)(void *), void *data, unsigned count, unsigned flags) {
  const char *order = getenv("THREAD_ORDER");
  const int is_down = order && !strcmp(order, "down");
  char *stacks = malloc((size_t)count * STACK);
  (void)flags;
  if (!stacks || count > MOST)
    abort();
  entry = task, argument = data, threads = left = (int)count;
  for (int i = 0; i < threads; i++) {
    has_begun[i] = is_done[i] = 0;
    getcontext(&fibres[i]);
    fibres[i].uc_stack.ss_sp = stacks + (size_t)i * STACK;
    fibres[i].uc_stack.ss_size = STACK;
    makecontext(&fibres[i], run, 0);
  }
  while (left) {
    turns++;
    for (int i = 0; i < threads; i++) {
      running = is_down ? threads - 1 - i : i;
      if (is_done[running])
        continue;
      swapcontext(&scheduler, &fibres[running]);
      left -= is_done[running];
    }
  }
  running = 0;
  free(stacks);
}
"""


def ordered_runtime(folder: Path) -> Path:
    """The runtime, built in `folder`; the environment variable `THREAD_ORDER` is ``up`` or ``down``."""
    source, library = folder / "ordered_runtime.c", folder / "ordered_runtime.so"
    source.write_text(_SOURCE)
    ran(tool("cc"), "-std=gnu11", *STRICT, "-O1", "-shared", "-fPIC", source, "-o", library, folder=folder)
    return library


def without_barriers(*how: Any) -> Iterator[ScheduledCall]:
    found = list(schedule(*how))
    waiting = [i for i, scheduled in enumerate(found) if scheduled.waits]
    yield from (replace(scheduled, waits=i in waiting[:1]) for i, scheduled in enumerate(found))


def in_turns(kind: str, threads: int) -> list[int]:
    """How many turns the threads of the network took in both orders, and 0 for wrong results."""
    module = network(kind)
    inputs = random_inputs(lower(module, targets.host(), Phase.QNN).inputs, 3)
    wanted = compile_module(module)(*inputs)
    turns = ctypes.c_int.in_dll(ctypes.CDLL(os.environ[openmp.VARIABLE]), "turns")
    found: list[int] = []
    for order in ("up", "down"):
        # A second call of an executable may ask for fewer threads.
        executable = compile_module(module, threads=threads, min_cycles=MIN_CYCLES)
        os.environ["THREAD_ORDER"], turns.value = order, 0
        found.append(turns.value if np.array_equal(executable(*inputs), wanted) else 0)
    return found


def drop_barriers() -> None:
    """Let networks be compiled with one barrier alone."""
    divided_network.schedule = without_barriers


@pytest.mark.parametrize("kind", KINDS)
def test_threads_that_take_turns_compute_the_same(kind: str, tmp_path: Path) -> None:
    runtime = ordered_runtime(tmp_path)
    environment = {**os.environ, openmp.VARIABLE: str(runtime)}
    code = """
from test_thread_memory import drop_barriers, in_turns
assert all(turns > 3 for threads in (2, 5) for turns in in_turns({kind!r}, threads)), "wrong results"
drop_barriers()
assert in_turns({kind!r}, 2) == [0, 0], "missing barriers are not noticed"
"""
    folders = [str(Path(__file__).parent), str(Path(__file__).parents[1])]
    environment["PYTHONPATH"] = os.pathsep.join(folders)
    subprocess.run([sys.executable, "-c", code.format(kind=kind)], env=environment, check=True, timeout=HANG)


# Loop nests that use the same scratch memory: divided where none reads what another one wrote, together elsewhere.

COUNTS = (3, 7)
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
REMAINDERS = [(1, 7, 35, 64, 40), (1, 3, 11, 64, 17)]


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


# Products are cut where those that read them are cut, with the same bits.


def product_read_by_channel(size: tuple[int, int], channels: tuple[int, int]) -> ir.Module:
    """A convolution from one number of channels to another, then its channels one after the other."""
    drawn = Network(5, (1, *size, channels[0]))
    drawn.convolution(channels[1], 1)
    before = drawn.type
    drawn.shape = [1, channels[1], *size]
    permutation = "{permutation = array<i64: 0, 3, 1, 2>}"
    drawn.lines.append(f'%last = "qnn.transpose"({drawn.value}) {permutation} : ({before}) -> {drawn.type}')
    drawn.value = "%last"
    return parse(drawn.text())


@pytest.mark.parametrize(
    ("name", "size", "channels"),
    [
        ("host", (8, 8), (256, 512)),
        ("amxint8,portable", (3, 11), (256, 512)),
        ("amxint8,portable", (8, 8), (64, 200)),
        ("avx2,portable", (7, 7), (256, 512)),
    ],
)
def test_products_read_by_channel_give_the_reference(
    size: tuple[int, int], channels: tuple[int, int], name: str
) -> None:
    module = product_read_by_channel(size, channels)
    chosen = targets.resolve(name)
    inputs = random_inputs(lower(module, chosen, Phase.QNN).inputs, 3)
    wanted = next(iter(interpreter.run(module, inputs)))
    for threads in COUNTS:
        executable = compile_module(module, target=chosen, threads=threads, min_cycles=0)
        for _ in range(3):
            np.testing.assert_array_equal(executable(*inputs), wanted, strict=True)
