"""How long it takes from a model file to its first result, in fresh processes: the table of docs/cache.md.

    python benchmarks/tools/start_up.py mobilenet_v2.tflite mobilenet_v1.tflite --runs 9

The columns, all in milliseconds of wall-clock time from the first import to the first result, medians of the runs:

- without the cache;
- cold: with an empty cache, which is filled;
- same layers: with the kernels of another network that has the same layers, and other weights;
- warm: with the network in the cache;
- `qdialect.load`: from the file that `Executable.save` wrote.

The first three are measured once: they take seconds. Nothing else should run on the machine meanwhile.
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

from qdialect.cache.store import Store

PROGRAM = """
import sys, time
start = time.perf_counter()
import numpy as np
import qdialect
executable = getattr(qdialect, sys.argv[1])(sys.argv[2])
executable(*(np.zeros(port.shape, port.dtype) for port in executable.inputs))
print(1e3 * (time.perf_counter() - start))
if len(sys.argv) > 3:
    executable.save(sys.argv[3])
"""
COLUMNS = ("without the cache", "cold", "same layers", "warm", "`qdialect.load`")


def milliseconds(cache: Path | str, *arguments: str | Path) -> float:
    """What a fresh process prints."""
    command = [sys.executable, "-c", PROGRAM, *map(str, arguments)]
    settings = {**os.environ, "QDIALECT_CACHE": str(cache)}
    return float(subprocess.run(command, env=settings, stdout=subprocess.PIPE, text=True, check=True).stdout)


def median(runs: int, cache: Path | str, *arguments: str | Path) -> float:
    return statistics.median(milliseconds(cache, *arguments) for _ in range(runs))


def leave_kernels(store: Store) -> None:
    """Remove all entries but those of kernels."""
    for file in store.files():
        sections = store.get(file.path.name)
        if sections is None or not {"object", "group"} & sections.keys():
            file.path.unlink()


def times(model: Path, runs: int) -> list[float]:
    with tempfile.TemporaryDirectory() as name:
        cache, library = Path(name, "cache"), Path(name, "network.so")
        off = milliseconds("off", "compile", model, library)
        cold = milliseconds(cache, "compile", model)
        leave_kernels(Store(cache / "entries", 1 << 40))
        same_layers = milliseconds(cache, "compile", model)
        warm = median(runs, cache, "compile", model)
        return [off, cold, same_layers, warm, median(runs, "off", "load", library)]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Measure the time from a model file to its first result.")
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--runs", type=int, default=9, help="runs of which the median is taken (default 9)")
    options = parser.parse_args(arguments)
    print(f"| network | {' | '.join(COLUMNS)} |", flush=True)
    print("|---|" + "---:|" * len(COLUMNS), flush=True)
    for model in options.models:
        print(
            f"| {model.stem}, `{model.suffix}` | {' | '.join(f'{time:.0f}' for time in times(model, options.runs))} |",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
