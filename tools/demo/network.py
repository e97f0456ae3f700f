"""A whole network: from its file to machine code, every layer compared with the reference, and as a program in C."""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from qdialect.aot.artifact import artifact_of
from qdialect.aot.cpu_dispatch import versions_of
from qdialect.aot.headers import c_header
from qdialect.aot.object_file import c_compiler
from qdialect.bench import models, throughput
from qdialect.bench.random_networks import draw_network
from qdialect.bench.tflite_writer import signed_channels_last, write_tflite
from qdialect.cli import terminal
from qdialect.frontends.tflite import TENSOR_ATTRIBUTE, import_tflite
from qdialect.ir import context
from qdialect.ir._mlir import ir
from qdialect.lowering.pipeline.phases import lower
from qdialect.passes.pipeline import PassManager
from qdialect.reference import interpreter
from qdialect.runtime import compile_module
from qdialect.runtime.comparison import differing
from qdialect.runtime.phase_comparison import with_layers
from qdialect.support.diagnostics import CompileError
from qdialect.support.interface import Array
from tools.demo import heading, op_names, say

_NAME = "mobilenet_v1_0.25_224_quant"
_SIZE = 224
"""Height and width of images."""
_LIBRARY = "network"
_STARTS = 5
_MAIN = """\
#include <stdio.h>
#include "network.h"

static _Alignas(QDIALECT_WORKSPACE_ALIGNMENT) unsigned char workspace[NETWORK_WORKSPACE_SIZE];
static _Alignas(64) unsigned char image[NETWORK_INPUT_0_SIZE], result[NETWORK_OUTPUT_0_SIZE];

int main(void) {
  const void *const inputs[] = {image};
  void *const outputs[] = {result};
  if (fread(image, 1, sizeof image, stdin) != sizeof image) return 1;
  if (network_run(inputs, outputs, workspace) != QDIALECT_OK) return 1;
  return fwrite(result, 1, sizeof result, stdout) != sizeof result;
}
"""


@dataclass(frozen=True)
class Case:
    """A network, an input, and what every layer must be, by the number of its tensor."""

    title: str
    source: str
    module: ir.Module
    image: Array
    layers: Mapping[int, Array]


def show(case: Case) -> tuple[int, Array]:
    """Print what becomes of the network; the number of elements that differ from the reference, and its result."""
    heading(case.title)
    say(f"Every layer is compared with {case.source}.")
    terminal.progress("compiling")
    start = time.perf_counter()
    executable = compile_module(case.module)
    compiled = time.perf_counter() - start
    speed, macs = throughput.measure(executable, [case.image]), throughput.multiply_accumulates(case.module)
    share = speed.share(macs)
    terminal.progress("comparing layers")
    count, different, elements = _compare(case)
    of_peak = f", {100 * share:.0f} % of bare {speed.loop}" if share else ""
    result = np.asarray(executable(case.image))
    rows = [
        ("ops", f"{_ops(case.module)} as imported, {_ops(case.module, 'fuse-qnn')} after --fuse-qnn"),
        ("compiled in", f"{compiled:.1f} s: {executable.kernels} kernels in {len(executable.calls)} calls"),
        ("time per image", f"{speed.seconds * 1e3:.3f} ms ({speed.rate(macs) * 1e-9:.1f} GMAC/s{of_peak})"),
        ("working memory", f"{executable.working_memory} bytes, besides {executable.constants_bytes} of constants"),
        ("layers compared", f"{count}: {different} of {elements} elements differ"),
        ("answer", f"class {int(np.argmax(result))}"),
    ]
    print("\n" + terminal.render_table(("", ""), rows).lstrip())
    return different, result


def show_program(case: Case, expected: Array) -> int:
    """Print what becomes of the network as a file; how many elements of the program in C are not those `expected`."""
    heading("The same network without Python")
    try:
        compiler = c_compiler()
    except CompileError as error:
        say(f"It is not shown: {error.message}.")
        return 0
    with tempfile.TemporaryDirectory() as name:
        return _show_in(case, expected, compiler, Path(name))


def find_case() -> Case:
    """The real network where it and its recordings are here, else what can be made of it."""
    return _recorded() or _found() or _drawn()


def _recorded() -> Case | None:
    path, outputs = models.find(_NAME), models.find_reference(_NAME)
    recording = models.find_reference(_NAME, kind="layers")
    if not path or not outputs or not recording:
        return None
    with np.load(outputs) as arrays:
        image = arrays["in_0"]
    with np.load(recording) as arrays:
        layers = {int(name[1:]): array for name, array in arrays.items() if name[1:].isdigit()}
    source = "what TFLite's reference kernels computed, recorded in a file"
    return Case(f"{path.name}, a network that others made", source, import_tflite(path), image, layers)


def _found() -> Case | None:
    path = models.find(_NAME)
    if path is None:
        return None
    image = np.random.default_rng(0).integers(0, 256, (1, _SIZE, _SIZE, 3), dtype=np.uint8)
    return _interpreted(path.name, import_tflite(path), image)


def _drawn() -> Case:
    say(f"{_NAME}.tflite is not here ('make models' downloads it): writing its layers with random weights.")
    drawn, image, _ = draw_network("mobilenet_v1_025", _SIZE)
    return _interpreted("a network that was drawn", import_tflite(write_tflite(drawn)), signed_channels_last(image))


def _interpreted(name: str, module: ir.Module, image: Array) -> Case:
    layers: dict[int, Array] = {}

    def observe(op: ir.Operation, value: Array) -> None:
        if TENSOR_ATTRIBUTE in op.attributes:
            layers[ir.IntegerAttr(op.attributes[TENSOR_ATTRIBUTE]).value] = value

    terminal.progress("computing every layer by the reference")
    interpreter.run(module, [image], observe=observe)
    return Case(name, "the NumPy reference, run here", module, image, layers)


def _compare(case: Case) -> tuple[int, int, int]:
    """Layers compared, elements that differ, elements."""
    module, tensors = with_layers(case.module, TENSOR_ATTRIBUTE)
    found = compile_module(module)(case.image)
    pairs = [(case.layers[t], array) for t, array in zip(tensors, found[-len(tensors) :], strict=True)]
    return len(pairs), sum(differing(*pair) for pair in pairs), sum(wanted.size for wanted, _ in pairs)


def _ops(module: ir.Module, *passes: str) -> int:
    """Number of ops after `passes`, without constants and the return."""
    copy = context.copy(module)
    for name in passes:
        PassManager(name).run(copy)
    return len(op_names(copy))


def _show_in(case: Case, expected: Array, compiler: list[str], folder: Path) -> int:
    targets = versions_of(["host"])
    artifact = artifact_of(_LIBRARY, targets, [lower(case.module, target) for target in targets])
    terminal.progress("linking")
    (folder / "network.h").write_text(c_header(artifact.network, "tools.demo"))
    (folder / "main.c").write_text(_MAIN)
    library = artifact.library("network.so")
    (folder / "network.so").write_bytes(library)
    options = ("-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "main.c", "./network.so", "-Wl,-rpath,.", "-o", "main")
    subprocess.run([*compiler, *options], cwd=folder, check=True)
    seconds, answer = min(_run_program(folder, case.image.tobytes()) for _ in range(_STARTS))
    different = differing(expected, np.frombuffer(answer, expected.dtype).reshape(expected.shape))
    rows = [
        ("shared library", f"{len(library)} bytes, with {artifact.network.versions[0].constants_bytes} of constants"),
        ("working memory", f"{artifact.network.workspace_bytes} bytes, which the caller gives"),
        ("start", f"{seconds * 1e3:.1f} ms from the start of a program in C to its end, one image included"),
        ("compared with Python", f"{different} of {expected.size} elements differ"),
    ]
    print("\n" + terminal.render_table(("", ""), rows).lstrip())
    return different


def _run_program(folder: Path, image: bytes) -> tuple[float, bytes]:
    """Seconds, and what the program writes."""
    start = time.perf_counter()
    done = subprocess.run(["./main"], cwd=folder, input=image, capture_output=True, check=True)
    return time.perf_counter() - start, done.stdout
