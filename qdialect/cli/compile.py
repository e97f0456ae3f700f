"""``qdialect-compile``: a model as a shared library, an object file or text, for programs without Python."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import qdialect
from qdialect.aot.artifact import Artifact, artifact_of
from qdialect.aot.cpu_dispatch import symbol_part, versions_of
from qdialect.aot.headers import c_header, cpp_header
from qdialect.aot.object_file import c_compiler, disassembly
from qdialect.aot.record import checked_name, name_of_file
from qdialect.cache.store import open_store
from qdialect.cli import arguments as args
from qdialect.cli import network_tables, terminal
from qdialect.driver.batching.network import SIZES, lowered_sizes, read_batched
from qdialect.driver.tuning import tuned
from qdialect.frontends.model_files import FORMATS, is_float32, read_model
from qdialect.ir._mlir import ir
from qdialect.lowering.ir.lowered import Lowered, target_name_of
from qdialect.lowering.pipeline.phases import lower, lower_with_lines, threads_of
from qdialect.passes.observers import progress_of
from qdialect.support.diagnostics import InputError
from qdialect.support.files import is_device, is_same_file, write_files
from qdialect.support.limits import using_jobs
from qdialect.support.log import tell, tell_float32
from qdialect.support.options import DYNAMIC
from qdialect.targets import TARGETS, Target

PROGRAM = "qdialect-compile"
_HEADERS = (".h", ".hpp")
# A name that a header can include: in quotes, on one line.
_INCLUDED = re.compile(r'[^"\\\x00-\x1f\x7f]+')
_EXAMPLES = """\
The library exports NAME_run and what else the header declares; it needs libc and, with --threads, an OpenMP runtime.

examples:
  qdialect-compile model.tflite -o model.so               a library, model.h for C and model.hpp for C++
  qdialect-compile model.tflite -o model.so --targets sapphirerapids,x86-64
                                                          two versions; the CPU decides when the library is loaded
  qdialect-compile model.onnx -o model.so --batch 8       an .onnx model, its open batch set to 8
  qdialect-compile model.onnx -o model.so --batch dynamic
                                                          one library for batches of any size
  qdialect-compile model.tflite -o model.so --threads 2   a call is divided among two threads
  qdialect-compile model.tflite -o net.o --emit obj --mcpu x86-64 --name mobilenet
                                                          an object file with mobilenet_run, for any x86-64 CPU
  qdialect-compile model.mlir -o model.ll --emit llvm     LLVM IR; asm is a disassembly, mlir the LLVM dialect
"""


class Arguments(args.ImportArguments):
    """The command line."""

    output: str
    emit: str
    mcpu: str | None
    mattr: str | None
    targets: list[str] | None
    threads: int
    jobs: int | None
    name: str | None
    tune: bool
    debug_info: bool
    clock: bool


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit status."""
    options = parser().parse_args(arguments, namespace=Arguments())
    with using_jobs(options.jobs):
        return terminal.run(PROGRAM, lambda: _compile(options))


def parser() -> args.CommandParser:
    """The parser of the command line."""
    made = args.CommandParser(PROGRAM, "Compile a quantized model into a file that runs without Python.", _EXAMPLES)
    made.add_argument("model", help=f"a {', '.join(FORMATS)} or .mlirbc file")
    made.add_argument("-o", "--output", required=True, metavar="FILE", help="where to write; '-' is stdout for text")
    made.add_argument(
        "--emit", choices=tuple(_EMITTED), default="so", help="so (default) and obj come with a .h and a .hpp file"
    )
    args.add_import_arguments(made, takes_any_batch=True)
    cpus = made.add_mutually_exclusive_group()
    cpus.add_argument(
        *("--mcpu", "--target"),
        metavar="NAME",
        help=f"the CPU: host (default), {', '.join(TARGETS)} or one that qdialect-opt --print-targets lists",
    )
    cpus.add_argument(
        "--targets", type=_names, metavar="NAME,NAME,...", help="several CPUs: the best version runs on each"
    )
    args.add_features_argument(made.add_argument)
    args.add_threads_argument(made.add_argument)
    args.add_jobs_argument(made.add_argument)
    made.add_argument("--name", metavar="SYMBOL", help="what C functions begin with (default: the stem of FILE)")
    made.switch(
        "--tune",
        help="measure kernels in several variants on this machine, take the fastest of each, and print what it won on "
        "stderr; for one CPU whose features this machine has",
    )
    made.switch(
        "-g",
        "--debug-info",
        help="line tables for gdb and perf: they show the text of phase x86, which is written next to FILE",
    )
    made.switch("--clock", help="read the cycle counter around kernels, for 'qdialect-run FILE --trace'")
    return made


def _names(text: str) -> list[str]:
    names = text.split(",")
    if not all(names):
        raise argparse.ArgumentTypeError(f"must be names with commas between them, but got '{text}'")
    return names


def _compile(options: Arguments) -> int:
    path = Path(options.output)
    name = checked_name(options.name if options.name is not None else name_of_file(path))
    _check_output(options, path)
    listings: dict[Path, bytes] = {}
    with progress_of("compiling"):
        artifact = _artifact(options, name, path, listings)
        contents = {**_EMITTED[options.emit](artifact, path), **listings}
    if options.output == "-":
        terminal.write_output("-", contents[path])
    else:
        write_files(contents)
    return 0


def _artifact(options: Arguments, name: str, path: Path, listings: dict[Path, bytes]) -> Artifact:
    """The network of the model, and in `listings` the files that its line tables name."""
    if options.batch == DYNAMIC:
        given = {"--tune": options.tune, "--debug-info": options.debug_info, "--clock": options.clock}
        args.refuse(given, f"must be given with a batch of one size, but got --batch {DYNAMIC}")
        network = read_batched(Path(options.model), args.import_options(options), SIZES)
        targets = _targets(options, network.module)
        batch, lowered = lowered_sizes(network, targets, threads_of(network.module, options.threads))
        return artifact_of(name, targets, lowered, batch)
    module = read_model(options.model, args.import_options(options))
    if is_float32(module):
        tell_float32(Path(options.model))
    targets = _targets(options, module)
    threads = threads_of(module, options.threads)
    if options.tune:
        args.refuse({"--clock": options.clock}, "must be given without --tune")
        module = _tuned(module, targets)
    lowered: list[Lowered] = []
    for target in targets:
        if options.debug_info:
            listing = path.with_suffix(f".{symbol_part(target)}.mlir").absolute()
            if is_same_file(listing, Path(options.model)):
                raise InputError(f"--output must be such that '{listing}', for --debug-info, is not the model")
            found, text = lower_with_lines(module, target, listing, threads=threads, clocked=options.clock)
            listings[listing] = text.encode()
        else:
            found = lower(module, target, threads=threads, clocked=options.clock)
        lowered.append(found)
    return artifact_of(name, targets, lowered)


def _tuned(module: ir.Module, targets: Sequence[Target]) -> ir.Module:
    if len(targets) != 1:
        raise InputError(f"--tune must be given for one CPU, but got {', '.join(target.name for target in targets)}")
    found, report = tuned(module, targets[0], store=open_store(), progress=tell)
    terminal.note(network_tables.tuning_text(report))
    return found


def _check_output(options: Arguments, path: Path) -> None:
    """Check the arguments before minutes of compilation, not after."""
    is_binary = options.emit in ("so", "obj")
    if not path.name:
        raise InputError(f"--output must name a file, but got '{options.output}'")
    args.check_output("--output", options.output, options.model)
    if options.debug_info and not is_binary:
        raise InputError(f"--debug-info must be given with --emit so or obj, but got --emit {options.emit}")
    if is_binary and (options.output == "-" or is_device(path)):
        raise InputError(
            f"--emit {options.emit} writes several files, so that --output must name one, but got '{path}'"
        )
    if is_binary and path.suffix in _HEADERS:
        raise InputError(f"--output must not name the header, which is written next to it, but got '{path}'")
    if is_binary and not _INCLUDED.fullmatch(path.name):
        raise InputError(f"--output must have a name that #include can name in a line, but got '{path.name}'")
    if options.emit == "so":
        c_compiler()


def _targets(options: Arguments, module: ir.Module) -> tuple[Target, ...]:
    if options.mattr:
        if options.targets:
            raise InputError("--mattr must be given without --targets")
        return versions_of([f"{options.mcpu or 'host'},{options.mattr}"])
    if options.mcpu is None and options.targets is None:
        # A module that was lowered knows what for.
        return versions_of([target_name_of(module) or "host"])
    return versions_of(options.targets or [options.mcpu or ""])


def _headers(artifact: Artifact, path: Path) -> dict[Path, bytes]:
    generator = f"{PROGRAM} {qdialect.__version__}"
    header, cpp = (path.with_suffix(suffix) for suffix in _HEADERS)
    return {
        header: c_header(artifact.network, generator, artifact.externals).encode(errors="surrogateescape"),
        cpp: cpp_header(artifact.network, header.name, generator).encode(errors="surrogateescape"),
    }


_EMITTED: Mapping[str, Callable[[Artifact, Path], Mapping[Path, bytes]]] = {
    "so": lambda artifact, path: {**_headers(artifact, path), path: artifact.library(path.name)},
    "obj": lambda artifact, path: {**_headers(artifact, path), path: artifact.object},
    "asm": lambda artifact, path: {path: disassembly(artifact.object).encode()},
    "llvm": lambda artifact, path: {path: artifact.llvm_ir().encode()},
    "mlir": lambda artifact, path: {path: artifact.mlir().encode()},
}


if __name__ == "__main__":
    sys.exit(main())
