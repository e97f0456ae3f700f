"""What compiling costs, in fresh processes without the cache: the table of benchmarks/HISTORY.md.

    python benchmarks/tools/compile_time.py mobilenet_v2.tflite resnet50.onnx --runs 5

The columns:

- MB: size of the model's file;
- import, s: CPU time until the package is imported;
- compile, s: CPU time from the model file to machine code, modules that are imported on the way included;
- peak, MB: the most memory of the process;
- beyond: peak memory less 200 MB, as a multiple of the file's size.

Times are medians of the runs, memory is the most of them. With `--core` the processes are kept to one core.

Modules come from bytecode, as those of an installed package do: a first process, which is not measured, writes it into
a temporary folder, whatever PYTHONDONTWRITEBYTECODE says. Without it every process would translate all of the source.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

PROGRAM = """
import resource, sys, time
start = time.process_time()
import qdialect
imported = time.process_time()
qdialect.compile(sys.argv[1])
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
print(imported - start, time.process_time() - imported, peak)
"""
MEGABYTE = 1e6
# What the libraries take before there is a model.
LIBRARIES = 200 * MEGABYTE


def measured(model: Path, bytecode: str) -> list[float]:
    """Import and compilation in seconds, and peak memory in bytes; the bytecode of modules is in `bytecode`."""
    command = [sys.executable, "-c", PROGRAM, str(model)]
    settings = {**os.environ, "QDIALECT_CACHE": "off", "PYTHONPYCACHEPREFIX": bytecode, "PYTHONDONTWRITEBYTECODE": ""}
    found = subprocess.run(command, env=settings, capture_output=True, text=True, check=False)
    if found.returncode:
        # What qdialect raises is the last line of a traceback; its notes stand above.
        reason = found.stderr.strip().rpartition("\n")[2] or f"the process ended with {found.returncode}"
        raise SystemExit(f"{model}: cannot be compiled: {reason}")
    return [float(part) for part in found.stdout.split()]


def row(model: Path, runs: int) -> str:
    with tempfile.TemporaryDirectory() as bytecode:
        measured(model, bytecode)
        imports, compilations, peaks = zip(*(measured(model, bytecode) for _ in range(runs)), strict=True)
    size, peak = model.stat().st_size, max(peaks)
    beyond = max(peak - LIBRARIES, 0) / size
    times = f"{statistics.median(imports):.2f} | {statistics.median(compilations):.2f}"
    return f"| {model.stem} | {size / MEGABYTE:.1f} | {times} | {peak / MEGABYTE:.0f} | {beyond:.1f} |"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Measure the CPU time and the memory of compilations.")
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--runs", type=int, default=3, help="runs of which the median is taken (default 3)")
    parser.add_argument("--core", type=int, help="the core that the processes are kept to")
    options = parser.parse_args(arguments)
    if options.core is not None:
        os.sched_setaffinity(0, {options.core})
    print("| network | MB | import, s | compile, s | peak, MB | beyond |")
    print("|---|---:|---:|---:|---:|---:|")
    for model in options.models:
        print(row(model, options.runs), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
