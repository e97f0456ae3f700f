"""Matrix tiles at run time: who asks Linux for them, what runs where it refuses, and state that must not get lost.

The permission is that of a process, the state of the registers that of a thread.
"""

import multiprocessing
import operator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bounds import HANG
from c_programs import HERE, STRICT, arrays_of_c, build_c, compiled, ran, tool
from cached import entries, kept
from drawn_graphs import Array, random_inputs
from drawn_networks import Network, tiled, with_externs, with_tiles
from subprocesses import output_of

import qdialect
from qdialect.cache.store import Store
from qdialect.ir._mlir import ir
from qdialect.ir.context import parse
from qdialect.lowering.pipeline.phases import Phase, lower
from qdialect.reference.interpreter import run
from qdialect.runtime import Executable, compile_module
from qdialect.targets import resolve

__all__ = ["kept"]

pytestmark = with_tiles

# A program begins with these: the network, an input and its output are its arguments.
FILES = """
import sys
import numpy as np
import qdialect
path, image, wanted = sys.argv[1], np.load(sys.argv[2]), np.load(sys.argv[3])
def check(network):
    np.testing.assert_array_equal(network(image), wanted)
"""
# Linux refuses matrix tiles to a process that has a stack for signal handlers which cannot hold them.
REFUSED = """
import ctypes
class Stack(ctypes.Structure):
    _fields_ = [("start", ctypes.c_void_p), ("flags", ctypes.c_int), ("size", ctypes.c_size_t)]
small = ctypes.create_string_buffer(4096)
assert ctypes.CDLL(None).sigaltstack(ctypes.byref(Stack(ctypes.addressof(small), 0, len(small))), None) == 0
"""


@pytest.fixture(scope="module")
def image() -> Array:
    return np.asarray(random_inputs(parse(tiled()))[0])


@pytest.fixture(scope="module")
def wanted(image: Array) -> Array:
    return np.asarray(run(parse(tiled()), [image])[0])


@pytest.fixture
def files(tmp_path: Path, image: Array, wanted: Array) -> tuple[str, str, str]:
    """The network, an input and its output."""
    (tmp_path / "model.mlir").write_text(tiled())
    np.save(tmp_path / "image.npy", image)
    np.save(tmp_path / "wanted.npy", wanted)
    return str(tmp_path / "model.mlir"), str(tmp_path / "image.npy"), str(tmp_path / "wanted.npy")


def called(executable: Executable, image: Array) -> Array:
    return np.asarray(executable(image))


def test_the_network_needs_tiles() -> None:
    for threads in (1, 2):
        assert 'tdpbusd"' in str(lower(parse(tiled()), resolve("amxint8"), Phase.X86, threads=threads).module)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_every_thread_has_a_configuration_of_its_own(threads: int, image: Array, wanted: Array) -> None:
    executable = compile_module(parse(tiled()), target="amxint8", threads=threads, min_cycles=0)
    np.testing.assert_array_equal(executable(image), wanted)
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(partial(called, executable), [image] * 200):
            np.testing.assert_array_equal(found, wanted)


def test_threads_that_were_there_before_the_permission(files: tuple[str, str, str]) -> None:
    """Of Python and of the OpenMP runtime."""
    program = """
import ctypes, queue, threading
from qdialect.runtime import openmp
GOMP = ctypes.CDLL(openmp.NAMES[0])
started = []
task = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: started.append(threading.get_native_id()))
GOMP.GOMP_parallel(task, None, 2, 0)
assert len(set(started)) == 2
tasks, done = queue.Queue(), queue.Queue()
def work():
    while network := tasks.get():
        try:
            check(network)
            done.put(None)
        except BaseException as error:
            done.put(error)
threads = [threading.Thread(target=work) for _ in range(2)]
for thread in threads:
    thread.start()
for count in (1, 2):
    network = qdialect.compile(path, threads=count, cache=False)
    check(network)
    for _ in range(20):
        tasks.put(network)
found = [done.get() for _ in range(40)]
for _ in threads:
    tasks.put(None)
assert found == [None] * 40, found
"""
    output_of(FILES + program, *files)


def test_a_fork_has_the_permission_of_its_parent_or_asks_itself(files: tuple[str, str, str]) -> None:
    program = """
import os
def child(network=None):
    number = os.fork()
    if number:
        return os.waitstatus_to_exitcode(os.waitpid(number, 0)[1])
    try:
        check(network or qdialect.compile(path, cache=False))
        os._exit(0)
    except BaseException as error:
        print(repr(error), file=sys.stderr)
    os._exit(1)
assert child() == 0
network = qdialect.compile(path, cache=False)
assert [child(network), child()] == [0, 0]
check(network)
"""
    output_of(FILES + program, *files)


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_processes_that_get_an_executable_ask_for_tiles(method: str, image: Array, wanted: Array) -> None:
    executable = qdialect.compile(parse(tiled()), target="amxint8")
    with multiprocessing.get_context(method).Pool(1) as pool:
        np.testing.assert_array_equal(pool.apply_async(operator.call, (executable, image)).get(HANG), wanted)


@pytest.mark.parametrize("linker", [True, False])
def test_a_network_of_the_cache_in_another_process(
    linker: bool, files: tuple[str, str, str], kept: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not linker:
        monkeypatch.setenv("CC", "absent")
    for threads in (1, 2):
        qdialect.compile(Path(files[0]), threads=threads)
    assert len(entries(kept, "library" if linker else "object.0")) == 2
    program = """
for threads in (1, 2):
    check(qdialect.compile(path, threads=threads))
assert "torch_mlir" not in sys.modules, "it was compiled anew"
"""
    output_of(FILES + program, *files)


def test_a_saved_library_asks_for_tiles(files: tuple[str, str, str], tmp_path: Path) -> None:
    library = compiled(tmp_path, tiled(), "--targets", "sapphirerapids,znver4")
    program = """
import ctypes
check(qdialect.load(path))
print(ctypes.CDLL(path).model_version())
"""
    assert output_of(FILES + program, str(library), *files[1:]) == "0\n"


def test_where_tiles_are_refused_the_next_kind_runs(files: tuple[str, str, str], kept: Store, tmp_path: Path) -> None:
    qdialect.compile(Path(files[0]))
    (library := tmp_path / "both").mkdir()
    (other := tmp_path / "one").mkdir()
    compiled(library, tiled(), "--targets", "sapphirerapids,znver4")
    compiled(other, tiled(), "--targets", "sapphirerapids")
    program = """
from qdialect.targets import resolve
assert resolve("host").kind.name == "avx512bf16"
check(qdialect.load(sys.argv[4]))
for use in (lambda: qdialect.load(sys.argv[5]), lambda: qdialect.compile(path, target="amxint8")):
    try:
        use()
    except qdialect.QDialectError as error:
        print(error)
check(qdialect.compile(path))
"""
    said = output_of(REFUSED + FILES + program, *files, str(library / "model.so"), str(other / "model.so"))
    assert said.splitlines() == [
        f"cannot load '{other}/model.so': this CPU can execute none of its versions: amxint8",
        "target 'amxint8' needs a CPU with amx-int8, amx-tile, which this one lacks",
    ]


def test_a_program_in_c_asks_for_tiles(image: Array, wanted: Array, tmp_path: Path) -> None:
    compiled(tmp_path, tiled(), "--targets", "x86-64,host")
    build_c(tmp_path)
    ports = compile_module(parse(tiled())).outputs
    np.testing.assert_array_equal(arrays_of_c(tmp_path, [image], ports)[0], wanted)
    assert "version 0 computed it" in ran("./run_model", "input0.bin", "output0.bin", folder=tmp_path)


# Two networks of one program, both of which ask. A signal handler runs one while the other is at work, and a caller
# leaves a configuration of its own; no call leaves any state.
HANDLER = """
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include "first.h"
#include "second.h"

#define TILE_DATA (1u << 18)

static _Alignas(64) unsigned char workspace[FIRST_WORKSPACE_SIZE], other[SECOND_WORKSPACE_SIZE];
static unsigned char image[FIRST_INPUT_0_SIZE], found[FIRST_OUTPUT_0_SIZE], again[FIRST_OUTPUT_0_SIZE];
static unsigned char wanted[FIRST_OUTPUT_0_SIZE];
static volatile sig_atomic_t calls, wrong;
static const _Alignas(64) unsigned char own[64] = {[0] = 1, [16] = 4, [48] = 1};

static void call_first(void) {
  const void *const inputs[] = {image};
  void *const outputs[] = {found};
  memset(found, 0, sizeof found);
  wrong |= first_run(inputs, outputs, workspace) != QDIALECT_OK || memcmp(found, wanted, sizeof found) != 0;
}

static void handler(int number) {
  const void *const inputs[] = {image};
  void *const outputs[] = {again};
  (void)number;
  memset(again, 0, sizeof again);
  wrong |= second_run(inputs, outputs, other) != QDIALECT_OK || memcmp(again, wanted, sizeof again) != 0;
  ++calls;
}

static unsigned in_use(void) {
  unsigned low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(1));
  return low;
}

int main(void) {
  const void *const inputs[] = {image};
  void *const outputs[] = {wanted};
  struct itimerval timer = {{0, 0}, {0, 0}};
  struct sigaction action;
  for (unsigned i = 0; i < sizeof image; ++i) image[i] = (unsigned char)(31 * i + i / 7);
  if (first_version() != 0 || second_version() != 0) return 2;
  if (first_run(inputs, outputs, workspace) != QDIALECT_OK) return 3;
  memset(&action, 0, sizeof action);
  action.sa_handler = handler;
  sigaction(SIGALRM, &action, 0);
  for (int round = 0; calls < 1000; ++round) {
    timer.it_value.tv_usec = 1 + round % 60;
    setitimer(ITIMER_REAL, &timer, 0);
    __asm__ volatile("ldtilecfg %0; tilezero %%tmm0" : : "m"(own));
    call_first();
    if (in_use() & TILE_DATA) return 4;
  }
  return wrong ? 5 : 0;
}
"""


def test_signal_handlers_and_callers_with_tiles_of_their_own(tmp_path: Path) -> None:
    for name in ("first", "second"):
        compiled(tmp_path, tiled(), "--emit", "obj", "--targets", "sapphirerapids,x86-64", output=f"{name}.o")
    (tmp_path / "handler.c").write_text(HANDLER)
    build = (tool("cc"), "-std=gnu11", *STRICT, "handler.c", "first.o", "second.o")
    for options in ([], ["-static"]):
        ran(*build, *options, "-o", "handler", folder=tmp_path)
        ran("./handler", folder=tmp_path)


def test_an_external_function_may_use_tiles_and_leave_them(tmp_path: Path) -> None:
    drawn = Network(11, (1, 7, 35, 64))
    for channels, kernel in ((48, 1), (48, 1), (9, 3)):
        drawn.convolution(channels, kernel)
    module = with_externs(parse(drawn.text()), predicate=is_square)
    (tmp_path / "driver.c").write_text("""
#include <string.h>
static const _Alignas(64) unsigned char own[64] = {[0] = 1, [16] = 4, [48] = 1};
int npu_fused_conv2d(const void *function, const void *const *inputs, void *const *outputs) {
  (void)function;
  __asm__ volatile("ldtilecfg %0; tilezero %%tmm0" : : "m"(own));
  memcpy(outputs[0], inputs[0], 7 * 35 * 48);
  return 0;
}
""")
    ran(tool("cc"), *STRICT, "-fPIC", "-shared", "driver.c", HERE, "-o", "driver.so", folder=tmp_path)
    image = drawn.rng.integers(0, 256, (1, 7, 35, 64)).astype(np.uint8)
    copied = qdialect.compile(module, target="generic", externals={"npu": same})(image)
    for threads in (1, 2):
        executable = qdialect.compile(
            module, target="amxint8", threads=threads, externals={"npu": tmp_path / "driver.so"}
        )
        for _ in range(3):
            np.testing.assert_array_equal(executable(image), copied)


def same(_: object, data: Array) -> Array:
    return data


def is_square(op: Any) -> bool:
    """Whether a convolution has as many channels as it reads."""
    shape = ir.RankedTensorType(op.operands[1].type).shape
    return shape[0] == shape[3]
