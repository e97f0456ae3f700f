"""The network as a file: its size, and a program in C that gives the bits of Python and starts at once."""

from __future__ import annotations

import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np

from qdialect.aot.artifact import artifact_of
from qdialect.aot.cpu_dispatch import versions_of
from qdialect.aot.headers import c_header
from qdialect.aot.linking import c_compiler
from qdialect.cli import terminal
from qdialect.cli.demo.network import Array, Case
from qdialect.cli.demo.printing import heading, say
from qdialect.lowering.pipeline.phases import lower
from qdialect.runtime.comparison import differing
from qdialect.support.diagnostics import CompileError

_NAME = "network"
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


def show(case: Case, expected: Array) -> int:
    """Print what becomes of the network as a file; how many elements of the program in C are not those `expected`."""
    heading("The same network without Python")
    try:
        compiler = c_compiler()
    except CompileError as error:
        say(f"It is not shown: {error.message}.")
        return 0
    with tempfile.TemporaryDirectory() as name:
        return _show(case, expected, compiler, Path(name))


def _show(case: Case, expected: Array, compiler: list[str], folder: Path) -> int:
    targets = versions_of(["host"])
    artifact = artifact_of(_NAME, targets, [lower(case.module, target) for target in targets])
    (folder / "network.h").write_text(c_header(artifact.network, "qdialect.cli.demo"))
    (folder / "main.c").write_text(_MAIN)
    library = artifact.library("network.so")
    (folder / "network.so").write_bytes(library)
    options = ("-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "main.c", "./network.so", "-Wl,-rpath,.", "-o", "main")
    subprocess.run([*compiler, *options], cwd=folder, check=True)
    seconds, answer = min(_run(folder, case.image.tobytes()) for _ in range(_STARTS))
    different = differing(expected, np.frombuffer(answer, expected.dtype).reshape(expected.shape))
    rows = [
        ("shared library", f"{len(library)} bytes, with {artifact.network.versions[0].constants_bytes} of constants"),
        ("working memory", f"{artifact.network.workspace_bytes} bytes, which the caller gives"),
        ("start", f"{seconds * 1e3:.1f} ms from the start of a program in C to its end, one image included"),
        ("compared with Python", f"{different} of {expected.size} elements differ"),
    ]
    print("\n" + terminal.render_table(("", ""), rows).lstrip())
    return different


def _run(folder: Path, image: bytes) -> tuple[float, bytes]:
    """Seconds, and what the program writes."""
    start = time.perf_counter()
    done = subprocess.run(["./main"], cwd=folder, input=image, capture_output=True, check=True)
    return time.perf_counter() - start, done.stdout
