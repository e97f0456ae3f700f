"""The command line of ``qdialect-run``, which is read without importing MLIR."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from qdialect.bench import frameworks
from qdialect.cli import arguments as args
from qdialect.frontends.model_files import FORMATS
from qdialect.support.diagnostics import InputError
from qdialect.support.options import DYNAMIC

if TYPE_CHECKING:
    from qdialect.support.options import Fallback

PROGRAM = "qdialect-run"
LIBRARY = ".so"
"""The suffixes of files with a compiled network."""

_EXAMPLES = """\
Inputs that are not given are random. 'qdialect-import' and 'qdialect-opt' write .mlir files.

examples:
  qdialect-run model.tflite                               random inputs, a table of the outputs
  qdialect-run model.tflite --input image.npy             one .npy file for each input, in order
  qdialect-run model.tflite --seed 7 --reference          compare with the NumPy reference; exit status 1 if they differ
  qdialect-run model.tflite --input image.npy --compare-layers
                                                          where results begin to differ from the framework's
  qdialect-run model.mlir --input a.npy b.npy --output-dir results
                                                          write results/output0.npy, results/output1.npy, ...
  qdialect-run model.tflite --benchmark                   time of a call, and its share of what the CPU can do
  qdialect-run model.tflite --benchmark --profile-ops     time of each kernel call
  qdialect-run model.tflite --threads 4 --trace trace.json
                                                          when each kernel call runs on each thread, for Perfetto
  qdialect-run model.tflite --threads 4 --benchmark       the same on four threads of an OpenMP runtime
  qdialect-run model.onnx --fallback none                 refuse a model that cannot be compiled as a whole
  qdialect-run model.tflite --benchmark --no-cache        compile anew, whatever was compiled before
  qdialect-run model.tflite --tune --benchmark            the fastest variant of each kernel on this machine
  qdialect-run model.tflite --target generic              code that needs no AVX-512
  qdialect-run model.tflite --batch dynamic --input image.npy
                                                          whatever batch image.npy has
  qdialect-run model.so                                   a network that qdialect-compile wrote
"""


class Arguments(args.ImportArguments):
    """The command line."""

    inputs: list[str]
    seed: int
    reference: bool
    compare_layers: bool
    output_dir: str | None
    benchmark: bool
    profile_ops: bool
    json: bool
    trace: str | None
    target: str
    mattr: str | None
    threads: int
    jobs: int | None
    fallback: Fallback | None
    externals: list[tuple[str, str]]
    no_cache: bool
    tune: bool

    @property
    def is_library(self) -> bool:
        """Whether the network has been compiled into a file."""
        return Path(self.model).suffix == LIBRARY


def parser() -> args.CommandParser:
    """The parser of the command line."""
    made = args.CommandParser(PROGRAM, "Compile a quantized model for this machine and run it.", _EXAMPLES)
    made.add_argument(
        "model",
        help=f"a {', '.join(FORMATS)} or .mlirbc file, of .mlir and .mlirbc any phase, or a {LIBRARY} that "
        "qdialect-compile wrote",
    )
    made.add_argument(
        "--input",
        dest="inputs",
        action="extend",
        nargs="+",
        default=[],
        metavar="FILE",
        help="a .npy file for each input, in the model's order; without any, inputs are random",
    )
    args.add_import_arguments(made, takes_any_batch=True)
    made.add_argument("--seed", type=_seed, default=0, help="seed of random inputs (default: 0)")
    made.switch("--reference", help="also run the NumPy reference, and fail where an element differs")
    made.switch(
        "--compare-layers",
        help="also compute each quantized tensor from its framework's own tensors, compare it with the framework's and "
        "with the same graph in float64, and fail where an element differs from the framework",
    )
    made.add_argument("--output-dir", metavar="DIR", help="write every output there as a .npy file")
    made.switch("--benchmark", help="measure a call, and the bare dot-product instruction for comparison")
    made.switch("--profile-ops", help="with --benchmark: time, share of peak and bytes of every kernel")
    made.add_argument(
        "--trace",
        metavar="FILE",
        help="write when each kernel call runs on each thread in one call, as JSON for Perfetto and chrome://tracing",
    )
    args.add_json_argument(made.add_argument)
    args.add_target_arguments(made.add_argument)
    args.add_threads_argument(made.add_argument)
    args.add_jobs_argument(made.add_argument)
    made.add_argument(
        "--externals",
        action="append",
        default=[],
        type=_external,
        metavar="TARGET=FILE",
        help="the library with the functions that qnn-outline-fused has handed to a target; may be given again",
    )
    args.add_fallback_argument(
        made, "the framework, where it is installed; a line on stderr lists the nodes that it runs"
    )
    made.switch("--no-cache", help="compile anew, and keep nothing; 'qdialect-cache' shows what is kept")
    made.switch(
        "--tune", help="measure kernels in several variants, take the fastest of each, and print what it won on stderr"
    )
    return made


def _external(text: str) -> tuple[str, str]:
    target, _, library = text.partition("=")
    if not target or not library:
        raise argparse.ArgumentTypeError(f"must be TARGET=FILE, but got '{text}'")
    return target, library


def _seed(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"must be an integer of at least 0, but got '{text}'")
    return int(text)


def check(options: Arguments) -> None:
    """Raise `InputError` for options that do not go together."""
    if options.is_library:
        _check_library(options)
    traced = {"--trace": options.trace is not None}
    measured = {"--reference": options.reference, "--profile-ops": options.profile_ops, **traced}
    if options.batch == DYNAMIC:
        wanted = f"must be given with a batch of one size, but got --batch {DYNAMIC}"
        args.refuse({**measured, "--tune": options.tune}, wanted)
    if options.json:
        args.refuse({**measured, "--compare-layers": options.compare_layers}, "must be given without --json")
    if options.profile_ops and not options.benchmark:
        raise InputError("--profile-ops must be given with --benchmark")
    if options.profile_ops and options.threads > 1:
        raise InputError("--profile-ops measures one thread, and must be given without --threads")
    if options.compare_layers:
        _check_layers(options)
    args.check_output("--trace", options.trace, options.model)


def _check_layers(options: Arguments) -> None:
    if Path(options.model).suffix.lower() not in frameworks.OWN:
        raise InputError(
            f"--compare-layers must be given a file of {', '.join(frameworks.OWN)}, but got '{options.model}'"
        )
    if Path(options.model).suffix.lower() == ".pt2" and not options.trust_pt2:
        raise InputError("--compare-layers runs a .pt2 file in PyTorch, and must be given with --trust-pt2")
    given = {"--batch": options.batch != 1, "--dim": options.dim, "--signature": options.signature}
    given |= {"--branch": options.branch}
    for option, is_given in {**given, "--profile": options.profile}.items():
        if is_given:
            raise InputError(f"--compare-layers must be given without {option}")


def _check_library(options: Arguments) -> None:
    """Reject options of how a network is read or compiled."""
    given = {
        "--reference": options.reference,
        "--compare-layers": options.compare_layers,
        "--profile-ops": options.profile_ops,
        "--no-cache": options.no_cache,
        "--tune": options.tune,
        "--target": options.target != "host",
        "--mattr": options.mattr is not None,
        "--threads": options.threads != 1,
        "--jobs": options.jobs is not None,
        "--batch": options.batch != 1,
        "--dim": options.dim,
        "--profile": options.profile,
        "--signature": options.signature,
        "--branch": options.branch,
        "--trust-pt2": options.trust_pt2,
        "--fallback": options.fallback is not None,
        "--externals": options.externals,
    }
    args.refuse(given, f"must be given with a model, but got the library '{options.model}'")
