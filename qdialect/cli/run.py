"""``qdialect-run``: compile a model, run it on arrays, and say what came out."""

from __future__ import annotations

import argparse
import io
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdialect._mlir import ir
from qdialect.cache.networks import compile_kept
from qdialect.cache.store import open_store
from qdialect.cli import profile_chart, region_table, table, terminal
from qdialect.cli.command_parser import CommandParser
from qdialect.cli.import_arguments import add_fallback_argument, add_import_arguments, import_options
from qdialect.cli.npy import read_npy
from qdialect.cli.profile_table import profile_table
from qdialect.cli.target_arguments import add_target_arguments, target_name
from qdialect.cli.threads_argument import add_threads_argument
from qdialect.diagnostics import CompileError, ImportModelError, InputError, QDialectError, printable
from qdialect.fallback import Fallback, compile_refused, summary
from qdialect.lowering.lowered import phase_of
from qdialect.lowering.phase import Phase
from qdialect.model_files import FORMATS, read_model
from qdialect.reference import interpreter
from qdialect.runtime import Executable, workload
from qdialect.runtime.comparison import differing
from qdialect.runtime.partitioned import PartitionedExecutable
from qdialect.runtime.profile import profile_ops
from qdialect.runtime.region_times import region_times

PROGRAM = "qdialect-run"
Array = NDArray[Any]

_SHOWN_VALUES = 6
# From so many elements on, in a row, the largest are told instead of the first.
_FEWEST_SCORES = 10
_SHOWN_SCORES = 3
_EXAMPLES = """\
Inputs that are not given are random. 'qdialect-import' and 'qdialect-opt' write .mlir files.

examples:
  qdialect-run model.tflite                               random inputs, a table of the outputs
  qdialect-run model.tflite --input image.npy             one .npy file for each input, in order
  qdialect-run model.tflite --seed 7 --reference          compare with the NumPy reference; exit status 1 if they differ
  qdialect-run model.mlir --input a.npy b.npy --output-dir results
                                                          write results/output0.npy, results/output1.npy, ...
  qdialect-run model.tflite --benchmark                   time of a call, and its share of what the CPU can do
  qdialect-run model.tflite --benchmark --profile-ops --profile-chart profile.html
                                                          time of each kernel call, as a table and a chart
  qdialect-run model.tflite --threads 4 --benchmark       the same on four threads of an OpenMP runtime
  qdialect-run model.onnx --fallback none                 refuse a model that cannot be compiled as a whole
  qdialect-run model.tflite --benchmark --no-cache        compile anew, whatever was compiled before
  qdialect-run model.tflite --target generic              code that needs no AVX-512
"""


class Arguments(argparse.Namespace):
    """The command line."""

    model: str
    inputs: list[str]
    seed: int
    reference: bool
    output_dir: str | None
    benchmark: bool
    profile_ops: bool
    profile_chart: str | None
    target: str
    mattr: str | None
    threads: int
    fallback: Fallback | None
    no_cache: bool


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit status."""
    options = _parser().parse_args(arguments, namespace=Arguments())
    return terminal.run(PROGRAM, lambda: _run(options))


def _parser() -> argparse.ArgumentParser:
    parser = CommandParser(PROGRAM, "Compile a quantized model for this machine and run it.", _EXAMPLES)
    parser.add_argument("model", help=f"a {', '.join(FORMATS)} or .mlirbc file; of .mlir and .mlirbc any phase")
    parser.add_argument(
        "--input",
        dest="inputs",
        action="extend",
        nargs="+",
        default=[],
        metavar="FILE",
        help="a .npy file for each input, in the model's order; without any, inputs are random",
    )
    add_import_arguments(parser)
    parser.add_argument("--seed", type=_seed, default=0, help="seed of random inputs (default: 0)")
    parser.add_argument(
        "--reference", action="store_true", help="also run the NumPy reference, and fail where an element differs"
    )
    parser.add_argument("--output-dir", metavar="DIR", help="write every output there as a .npy file")
    parser.add_argument(
        "--benchmark", action="store_true", help="measure a call, and the bare dot-product instruction beside it"
    )
    parser.add_argument(
        "--profile-ops", action="store_true", help="with --benchmark: time, share of peak and bytes of every kernel"
    )
    parser.add_argument(
        "--profile-chart",
        metavar="FILE",
        help=f"with --profile-ops: a picture of it, as {' or '.join(profile_chart.SUFFIXES)}",
    )
    add_target_arguments(parser.add_argument)
    add_threads_argument(parser.add_argument)
    add_fallback_argument(parser, "the framework, where it is installed; a line on stderr says what it runs")
    parser.add_argument(
        "--no-cache", action="store_true", help="compile anew, and keep nothing; 'qdialect-cache' shows what is kept"
    )
    return parser


def _seed(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"must be an integer of at least 0, but got '{text}'")
    return int(text)


def _check(options: Arguments) -> None:
    if options.profile_ops and not options.benchmark:
        raise InputError("--profile-ops must be given with --benchmark")
    if options.profile_ops and options.threads > 1:
        raise InputError("--profile-ops measures one thread, and must be given without --threads")
    path = options.profile_chart
    if path is not None and not options.profile_ops:
        raise InputError("--profile-chart must be given with --profile-ops")
    if path is not None and Path(path).suffix not in profile_chart.SUFFIXES:
        wanted = " or ".join(profile_chart.SUFFIXES)
        raise InputError(f"--profile-chart must name a {wanted} file, but got '{path}'")


def _check_reference(module: ir.Module, options: Arguments) -> None:
    phase = phase_of(module)
    if options.reference and phase is not Phase.QNN:
        raise InputError(f"module must be at phase qnn or fused to be run by the reference, but is at {phase}")


def _run(options: Arguments) -> int:
    _check(options)
    _progress("compiling")
    start = time.perf_counter()
    module, executable = _compiled(options)
    _print_compilation(executable, time.perf_counter() - start)
    inputs = [read_npy(name) for name in options.inputs] or workload.random_inputs(executable.inputs, options.seed)
    found = executable(*inputs)
    outputs = found if isinstance(found, tuple) else (found,)
    print(_output_table(executable, outputs))
    if options.output_dir is not None:
        _write(Path(options.output_dir), outputs)
    if options.benchmark:
        _progress("measuring")
        inputs = [np.ascontiguousarray(array) for array in inputs]
        macs = workload.multiply_accumulates(module) if module else sum(r.products for r in executable.regions)
        _print_speed(macs, workload.measure(executable, inputs, target=target_name(options)))
    if isinstance(executable, PartitionedExecutable):
        seconds = region_times(executable, inputs) if options.benchmark else ()
        print(f"\n{region_table.text(executable.regions, seconds)}")
    if options.profile_ops and module:
        _profile(module, inputs, options)
    return _compare(module, executable, inputs, outputs) if options.reference and module else 0


def _compiled(options: Arguments) -> tuple[ir.Module | None, Executable]:
    """The executable, and the module of a network that is compiled as a whole."""
    how, store = import_options(options), None if options.no_cache else open_store()
    try:
        module = read_model(options.model, how)
        _check_reference(module, options)
        return module, compile_kept(module, target=target_name(options), threads=options.threads, store=store)
    except (ImportModelError, CompileError) as error:
        target, threads, choice = target_name(options), options.threads, options.fallback
        path = Path(options.model)
        executable = compile_refused(path, how, error, target=target, threads=threads, fallback=choice, store=store)
    for option, is_given in (("--reference", options.reference), ("--profile-ops", options.profile_ops)):
        if is_given:
            raise InputError(f"{option} must be given for a network that is compiled as a whole")
    if options.fallback is None:
        terminal.say(f"{PROGRAM}: warning: {summary(executable)}")
    return None, executable


def _progress(what: str) -> None:
    if sys.stderr and sys.stderr.isatty():
        terminal.say(f"{what} ...")


def _print_compilation(executable: Executable, seconds: float) -> None:
    calls, memory = len(executable.calls), executable.working_memory
    print(f"compiled in {seconds:.1f} s: {executable.kernels} kernels in {calls} calls")
    print(f"memory: {executable.constants_bytes} bytes of constants, {memory} bytes of working memory\n")


def _output_table(executable: Executable, outputs: Sequence[Array]) -> str:
    rows = [
        (port.name, "x".join(map(str, port.shape)) or "scalar", port.dtype.name, *_summary(array))
        for port, array in zip(executable.outputs, outputs, strict=True)
    ]
    return table.render(("output", "shape", "dtype", "min", "max", "values"), rows, right=(3, 4))


def _summary(array: Array) -> tuple[str, str, str]:
    flat = array.reshape(-1)
    low, high = f"{flat.min():.6g}", f"{flat.max():.6g}"
    is_scores = array.ndim > 0 and array.shape[-1] == array.size >= _FEWEST_SCORES
    if is_scores:
        # The first of equal scores first.
        best = np.argsort(-flat.astype(np.float64), kind="stable")[:_SHOWN_SCORES]
        return low, high, "largest at " + ", ".join(f"{i} ({flat[i]:.6g})" for i in best)
    rest = " ..." if flat.size > _SHOWN_VALUES else ""
    return low, high, " ".join(f"{value:.6g}" for value in flat[:_SHOWN_VALUES]) + rest


def _write(folder: Path, outputs: Sequence[Array]) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        # A path with NUL is a ValueError.
        reason = error.strerror if isinstance(error, OSError) else error
        raise QDialectError(f"cannot make folder '{folder}': {reason}") from error
    for index, array in enumerate(outputs):
        content = io.BytesIO()
        np.save(content, array)
        path = folder / f"output{index}.npy"
        terminal.write_file(str(path), content.getvalue())
        print(f"wrote {path}")


def _print_speed(macs: int, speed: workload.Speed) -> None:
    print(f"\n{speed.seconds * 1e3:.4g} ms a call (median), {macs / 1e6:.4g} million multiply-accumulates", end="")
    print(f": {speed.rate(macs) * 1e-9:.4g} GMAC/s")
    share = speed.share(macs)
    if speed.peak is not None and share is not None:
        print(
            f"{100 * share:.1f} % of the bare {speed.loop} loop's {speed.peak * 1e-9:.4g} GMAC/s, measured in between"
        )


def _profile(module: ir.Module, inputs: Sequence[Array], options: Arguments) -> None:
    _progress("measuring every kernel")
    found = profile_ops(module, inputs, target=target_name(options))
    print(f"\n{profile_table(found)}")
    path = options.profile_chart
    if path is not None:
        content = profile_chart.file_content(found, path, Path(options.model).name)
        terminal.write_file(path, content.encode(errors="replace"))
        print(f"wrote {path}")


def _compare(module: ir.Module, executable: Executable, inputs: Sequence[Array], outputs: Sequence[Array]) -> int:
    _progress("running the reference")
    expected = interpreter.run(module, inputs)
    total = 0
    print()
    for port, wanted, found in zip(executable.outputs, expected, outputs, strict=True):
        count = differing(wanted, found)
        print(f"{printable(port.name)}: {count} of {found.size} elements differ from the reference")
        total += count
    return 1 if total else 0


if __name__ == "__main__":
    sys.exit(main())
