"""Measures what callers and batches gain, and writes the tables of docs/deploying.md.

    python tools/deployment_tables.py [--seconds 2] [--check]

Run it on a machine that does nothing else. ``--check`` prints the tables and writes nothing.
"""

import argparse
import math
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
# The checkout that this file belongs to, whatever is installed.
sys.path[:0] = [str(ROOT)]

import qdialect  # noqa: E402
from qdialect.aot.object_file import c_compiler  # noqa: E402
from qdialect.bench.random_networks import draw_network  # noqa: E402
from qdialect.bench.tflite_writer import write_tflite  # noqa: E402
from qdialect.bench.throughput import times_of  # noqa: E402
from qdialect.driver.batching.network import fixed_batch  # noqa: E402
from qdialect.ir._mlir import ir  # noqa: E402
from qdialect.runtime import Executable, compile_module  # noqa: E402
from qdialect.runtime.comparison import random_inputs  # noqa: E402
from qdialect.support.interface import Port  # noqa: E402

PAGE = ROOT / "docs" / "deploying.md"
CALLERS, BATCHES = "concurrency", "batch"
_ROUNDS = 5
_CALLERS = (1, 2)
_SIZES = (1, 8, 64)
_WIDTHS = (1024, 2048, 2048, 256)
_DENSE_NAME = f"dense layers of {', '.join(map(str, _WIDTHS))} values"


@dataclass(frozen=True)
class Network:
    """A network, and what the tables call it."""

    name: str
    module: ir.Module


def main() -> int:
    parser = argparse.ArgumentParser(description="Write the tables of docs/deploying.md from measurements.")
    parser.add_argument("--seconds", type=float, default=2.0, help="of each measurement (default 2)")
    parser.add_argument("--check", action="store_true", help="print the tables and write nothing")
    options = parser.parse_args()
    networks = [
        Network("MobileNetV1 0.25, 224 x 224", mobilenet()),
        Network(_DENSE_NAME, qdialect.parse(dense_layers(_WIDTHS))),
    ]
    tables = {CALLERS: callers_table(networks, options.seconds), BATCHES: batches_table(networks, options.seconds)}
    page = PAGE.read_text()
    for name, table in tables.items():
        print(table, end="\n\n")
        page = with_table(page, name, table)
    if not options.check:
        PAGE.write_text(page)
    return 0


def with_table(page: str, name: str, table: str, tool: str = "tools/deployment_tables.py") -> str:
    """`page` with `table` in place of the one called `name`; raises `ValueError` where it has none."""
    begin, end = f"<!-- table {name}: {tool} -->\n", "<!-- end -->"
    before, found, rest = page.partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        raise ValueError(f"page must have a table {name} between comments")
    return f"{before}{begin}{table}\n{end}{after}"


def calls_a_second(executable: Executable, callers: int, seconds: float) -> float:
    """How often `callers` threads call one executable in a second."""
    inputs = random_inputs(executable.inputs, 0)
    counts = [0] * callers
    start, end = threading.Barrier(callers + 1), threading.Event()

    def call(index: int) -> None:
        executable(*inputs)
        start.wait()
        while not end.is_set() or not counts[index]:
            executable(*inputs)
            counts[index] += 1

    threads = [threading.Thread(target=call, args=(index,)) for index in range(callers)]
    for thread in threads:
        thread.start()
    start.wait()
    began = time.perf_counter()
    time.sleep(seconds)
    end.set()
    found = sum(counts) / (time.perf_counter() - began)
    for thread in threads:
        thread.join()
    return found


def callers_table(networks: Sequence[Network], seconds: float) -> str:
    """What a second thread gains in Python and, as the machine's bound, in C."""
    rows = [
        "| network | calls a second, one thread | two threads | gain | gain in C | share |",
        "|---|---|---|---|---|---|",
    ]
    with tempfile.TemporaryDirectory() as name:
        program = callers_program(Path(name))
        for network in networks:
            executable = qdialect.compile(network.module)
            library = Path(name) / "network.so"
            executable.save(library)
            loops = [partial(calls_a_second, executable), partial(calls_in_c, program, library, executable)]
            # In turns, so that what else the machine does meets all of them.
            rounds = [[loop(n, seconds / _ROUNDS) for loop in loops for n in _CALLERS] for _ in range(_ROUNDS)]
            one, two, *_ = (statistics.median(found) for found in zip(*rounds, strict=True))
            gain = statistics.median(found[1] / found[0] for found in rounds)
            bound = statistics.median(found[3] / found[2] for found in rounds)
            rows.append(f"| {network.name} | {one:,.0f} | {two:,.0f} | {gain:.2f} | {bound:.2f} | {gain / bound:.3f} |")
    return "\n".join(rows)


def callers_program(folder: Path) -> Path:
    """The program that calls a network from threads without an interpreter."""
    program = folder / "callers"
    source = Path(__file__).with_name("callers.c")
    subprocess.run([*c_compiler(), "-std=c11", "-O2", source, "-o", program, "-ldl", "-lpthread"], check=True)
    return program


def calls_in_c(program: Path, library: Path, executable: Executable, callers: int, seconds: float) -> float:
    """How often `callers` threads of a C program call the network of `library` in a second."""
    sizes = [math.prod(port.shape) * port.dtype.itemsize for port in (*executable.inputs, *executable.outputs)]
    command = [program, library, library.stem, str(callers), str(seconds), *map(str, sizes)]
    return float(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)


def batches_table(networks: Sequence[Network], seconds: float) -> str:
    rows = [
        '| network | batch | us per image, batch="dynamic" | us per image, fixed batch | ratio |',
        "|---|---|---|---|---|",
    ]
    for network in networks:
        dynamic = qdialect.compile(network.module, batch="dynamic")
        for size in _SIZES:
            fixed = compile_module(fixed_batch(network.module).of(size))
            calls = [_bound(executable, fixed.inputs, fixed.outputs) for executable in (dynamic, fixed)]
            rounds = [[_seconds(call, seconds / _ROUNDS) for call in calls] for _ in range(_ROUNDS)]
            any_size, one_size = (statistics.median(found) * 1e6 / size for found in zip(*rounds, strict=True))
            ratio = statistics.median(ours / theirs for ours, theirs in rounds)
            rows.append(f"| {network.name} | {size} | {any_size:.1f} | {one_size:.1f} | {ratio:.3f} |")
    return "\n".join(rows)


def _bound(executable: Executable, inputs: Sequence[Port], outputs: Sequence[Port]) -> Callable[[], None]:
    return executable.bind(random_inputs(inputs, 0), [np.empty(port.shape, port.dtype) for port in outputs])


def _seconds(call: Callable[[], None], seconds: float) -> float:
    """The median of one call."""
    call()
    return statistics.median(times_of(call, seconds))


def mobilenet() -> ir.Module:
    """The network with random weights: times do not depend on them."""
    return qdialect.read_model(write_tflite(draw_network("mobilenet_v1_025")[0]))


def dense_layers(widths: Sequence[int]) -> str:
    """Dense layers, one after the other, as a module."""
    lines: list[str] = []
    for index, (depth, width) in enumerate(pairwise(widths)):
        data, sums, given = (
            f"tensor<1x{n}x{element}>" for n, element in ((depth, "ui8"), (width, "i32"), (width, "ui8"))
        )
        weight = f"tensor<{width}x{depth}xi8>"
        lines.append(
            f'  %w{index} = "qnn.constant"() {{value = dense<3> : {weight}}} : () -> {weight}\n'
            f'  %s{index} = "qnn.dense"(%x{index}, %w{index}) {{input_scale = 0.5 : f64, input_zero_point = 7 : i64, '
            f"weight_scales = array<f64: 0.25>, weight_zero_points = array<i64: 0>}} : ({data}, {weight}) -> {sums}\n"
            f'  %x{index + 1} = "qnn.requantize"(%s{index}) {{input_scale = 0.5 : f64, '
            "weight_scales = array<f64: 0.25>, input_zero_points = array<i64: 0>, output_scale = 64.0 : f64, "
            'output_zero_point = 3 : i64, axis = 1 : i64, rounding = "fixed64_up", multiplier = "f64"} : '
            f"({sums}) -> {given}"
        )
    first, last = (f"tensor<1x{width}xui8>" for width in (widths[0], widths[-1]))
    end = f"  return %x{len(widths) - 1} : {last}"
    return "\n".join([f"func.func @main(%x0: {first}) -> {last} {{", *lines, end, "}"])


if __name__ == "__main__":
    sys.exit(main())
