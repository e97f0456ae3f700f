"""``qdialect-run``: compile a model, run it on arrays, and report the results.

MLIR is imported where something must be compiled or measured: a network that was compiled before needs neither.
"""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

import qdialect
from qdialect.cli import run_arguments, terminal
from qdialect.cli.arguments import target_name
from qdialect.cli.network_tables import region_text, tuning_text
from qdialect.cli.npy import read_npy
from qdialect.cli.run_arguments import PROGRAM, Arguments
from qdialect.cli.terminal import render_table
from qdialect.runtime import Executable
from qdialect.runtime.base import rounded
from qdialect.runtime.batched import BatchedExecutable
from qdialect.runtime.comparison import random_inputs
from qdialect.runtime.partitioned import PartitionedExecutable, region_times
from qdialect.runtime.shaped import ShapedExecutable
from qdialect.support.diagnostics import InputError
from qdialect.support.interface import Array
from qdialect.support.late_imports import LATE_IMPORTS

if TYPE_CHECKING:
    from qdialect.cli.run_reports import Reports


_REPORTED = (
    *("target", "threads", "inputs", "outputs", "kernels", "calls", "constants_bytes", "working_memory", "regions"),
    "metadata",
)
_SHOWN_VALUES = 6
# From this number of elements in a row on, the largest are printed instead of the first.
_MIN_SCORES = 10
_SHOWN_SCORES = 3


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit status."""
    options = run_arguments.parser().parse_args(arguments, namespace=Arguments())
    return terminal.run(PROGRAM, lambda: _run(options))


def _run(options: Arguments) -> int:
    run_arguments.check(options)
    given = [read_npy(name) for name in options.inputs]
    terminal.progress("loading" if options.is_library else "measuring kernels" if options.tune else "compiling")
    start = time.perf_counter()
    executable = _executable(options)
    seconds = time.perf_counter() - start
    if not options.json:
        _print_network(executable, "loaded" if options.is_library else "compiled", seconds)
    reports = _reports(options, executable) if options.reference or options.benchmark or options.trace else None
    inputs = given or _random_inputs(executable, options.seed)
    found = executable(*inputs)
    inputs = rounded(inputs, executable.inputs)
    outputs = found if isinstance(found, tuple) else (found,)
    if options.output_dir is not None:
        _write(Path(options.output_dir), outputs, is_told=not options.json)
    if options.json:
        speed = reports.speed([np.asarray(one, order="C") for one in inputs]) if reports else None
        terminal.write_json("-", _report(executable, seconds, outputs, speed))
        return 0
    print(_output_table(executable, outputs))
    if reports and options.benchmark:
        terminal.progress("measuring")
        inputs = [np.asarray(array, order="C") for array in inputs]
        reports.print_speed(inputs)
    if isinstance(executable, PartitionedExecutable):
        seconds = region_times(executable, inputs) if options.benchmark else ()
        print(f"\n{region_text(executable.regions, seconds)}")
    if reports and options.profile_ops:
        terminal.progress("measuring every kernel")
        reports.profile(inputs)
    if reports and options.trace:
        terminal.progress("tracing")
        reports.trace(inputs)
    differs = _compare_layers(options, executable, inputs) if options.compare_layers else 0
    if reports is None or not options.reference:
        return differs
    terminal.progress("running the reference")
    return reports.compare(inputs, outputs) or differs


def _report(executable: Executable, seconds: float, outputs: Sequence[Array], speed: object) -> dict[str, object]:
    """The content of the tables, for programs."""
    found = zip(executable.outputs, outputs, strict=True)
    return {
        **{name: getattr(executable, name) for name in _REPORTED},
        "seconds_to_compile": seconds,
        "results": [{"name": port.name, "shape": one.shape, "min": one.min(), "max": one.max()} for port, one in found],
        "speed": speed,
    }


def _compare_layers(options: Arguments, executable: Executable, inputs: Sequence[Array]) -> int:
    with LATE_IMPORTS:
        from qdialect.cli.layer_comparison import compare_layers

    terminal.progress("comparing layers")
    return compare_layers(Path(options.model), executable, inputs, target_name(options))


def _reports(options: Arguments, executable: Executable) -> Reports:
    with LATE_IMPORTS:
        from qdialect.cli.run_reports import Reports

    return Reports(options, executable)


def _executable(options: Arguments) -> Executable:
    """The executable to run: for one shape of inputs, or for any batch."""
    if options.is_library:
        return qdialect.load(options.model)
    executable = qdialect.compile(
        options.model,
        target=target_name(options),
        threads=options.threads,
        jobs=options.jobs,
        batch=cast("Any", options.batch),
        dims=dict(options.dim),
        profile=options.profile,
        trust=options.trust_pt2,
        signature=options.signature,
        branches=dict(options.branch),
        # The parts that the framework runs are reported below.
        fallback=options.fallback or "framework",
        externals=dict(options.externals),
        cache=not options.no_cache,
        tune=options.tune,
    )
    if isinstance(executable, ShapedExecutable):
        executable = executable.for_shape({})
    if isinstance(executable, PartitionedExecutable):
        _tell_parts(executable, options)
    if executable.tuning:
        terminal.note(tuning_text(executable.tuning))
    return executable


def _tell_parts(executable: PartitionedExecutable, options: Arguments) -> None:
    given = {"--reference": options.reference, "--profile-ops": options.profile_ops, "--trace": options.trace}
    for option, is_given in given.items():
        if is_given:
            raise InputError(f"{option} must be given for a network that is compiled as a whole")
    if options.fallback is None:
        with LATE_IMPORTS:
            from qdialect.driver.fallback import summary

        terminal.note(f"{PROGRAM}: warning: {summary(executable)}")


def _random_inputs(executable: Executable, seed: int) -> list[Array]:
    """Random inputs, of one entry where the batch is open."""
    ports = executable.ports(1)[0] if isinstance(executable, BatchedExecutable) else executable.inputs
    return random_inputs(ports, seed)


def _print_network(executable: Executable, how: str, seconds: float) -> None:
    calls, memory = len(executable.calls), executable.working_memory
    print(f"{how} in {seconds:.1f} s: {executable.kernels} kernels in {calls} calls")
    print(f"memory: {executable.constants_bytes} bytes of constants, {memory} bytes of working memory\n")


def _output_table(executable: Executable, outputs: Sequence[Array]) -> str:
    rows = [
        (port.name, "x".join(map(str, array.shape)) or "scalar", array.dtype.name, *_summary(array))
        for port, array in zip(executable.outputs, outputs, strict=True)
    ]
    return render_table(("output", "shape", "dtype", "min", "max", "values"), rows, right=(3, 4))


def _summary(array: Array) -> tuple[str, str, str]:
    flat = array.reshape(-1)
    low, high = f"{flat.min():.6g}", f"{flat.max():.6g}"
    is_scores = array.ndim > 0 and array.shape[-1] == array.size >= _MIN_SCORES
    if is_scores:
        # The first of equal scores first.
        best = np.argsort(-flat.astype(np.float64), kind="stable")[:_SHOWN_SCORES]
        return low, high, "largest at " + ", ".join(f"{i} ({flat[i]:.6g})" for i in best)
    rest = " ..." if flat.size > _SHOWN_VALUES else ""
    return low, high, " ".join(f"{value:.6g}" for value in flat[:_SHOWN_VALUES]) + rest


def _write(folder: Path, outputs: Sequence[Array], *, is_told: bool) -> None:
    terminal.make_folder(folder)
    for index, array in enumerate(outputs):
        content = io.BytesIO()
        np.save(content, array)
        path = folder / f"output{index}.npy"
        terminal.write_file(str(path), content.getvalue())
        if is_told:
            print(f"wrote {path}")


if __name__ == "__main__":
    sys.exit(main())
