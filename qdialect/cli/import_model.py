"""``qdialect-import``: a model file as MLIR text."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from qdialect import target
from qdialect.cli import report_table, terminal
from qdialect.cli.command_parser import CommandParser
from qdialect.cli.import_arguments import add_fallback_argument, add_import_arguments, import_options
from qdialect.diagnostics import InputError
from qdialect.log import tell_float32
from qdialect.model_files import FORMATS, format_of, is_float32
from qdialect.options import ImportOptions
from qdialect.pipeline import PassManager
from qdialect.report import report

_EXAMPLES = """\
examples:
  qdialect-import model.tflite                            print the module
  qdialect-import model.tflite -o model.mlir              write it to a file
  qdialect-import model.tflite --fuse -o model.mlir       one op for each kernel
  qdialect-import model.tflite | qdialect-opt --fuse-qnn  the same through a pipe
  qdialect-import model.onnx --batch 8                    an .onnx model, its open batch set to 8
  qdialect-import model.pt2 -o model.mlir                 a PyTorch program that torch.export.save wrote
  qdialect-import model.tflite --profile tflite-xnnpack   the numbers of TFLite's desktop delegate
  qdialect-import model.tflite --report                   what each node became, and what is not supported
  qdialect-import model.onnx --report --fallback framework
                                                          the regions of a model that is compiled in parts

"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit status."""
    options = _parser().parse_args(arguments)
    return terminal.run("qdialect-import", lambda: _import(options))


def _import(options: argparse.Namespace) -> int:
    path, how = Path(options.model), import_options(options)
    if options.report:
        for option, is_given in (("--fuse", options.fuse), ("--mlir-print-debuginfo", options.mlir_print_debuginfo)):
            if is_given:
                raise InputError(f"{option} must be given without --report, which prints no module")
        return _report(options, path, how)
    if options.fallback == "framework":
        raise InputError("--fallback framework must be given with --report: a module has no regions of a framework")
    module = format_of(path).read(path, how)
    if is_float32(module):
        tell_float32(path)
    if options.fuse:
        PassManager("fuse-qnn").run(module)
    text = module.operation.get_asm(enable_debug_info=options.mlir_print_debuginfo)
    terminal.write_output(options.output, text)
    return 0


def _report(options: argparse.Namespace, path: Path, how: ImportOptions) -> int:
    found = report(path, target.host(), how, options.fallback or "none")
    terminal.write_output(options.output, f"{report_table.text(found)}\n")
    if found.error is not None:
        raise found.error
    return 0


def _epilog() -> str:
    operators = (f"operators of {entry.suffix} files: {', '.join(entry.operators())}" for entry in FORMATS.values())
    return "\n\n".join([_EXAMPLES.rstrip(), *operators])


def _parser() -> argparse.ArgumentParser:
    parser = CommandParser(
        "qdialect-import",
        "Import a quantized model file into the qnn dialect, with the arithmetic of its reference kernels.",
        _epilog(),
    )
    parser.add_argument("model", help=f"a {' or '.join(FORMATS)} file")
    parser.add_argument(
        "-o", "--output", default="-", metavar="FILE", help="where to write; '-', the default, is stdout"
    )
    add_import_arguments(parser)
    add_fallback_argument(parser, "none")
    parser.add_argument("--fuse", action="store_true", help="run fuse-qnn on the module")
    parser.add_argument(
        "--report",
        action="store_true",
        help="instead of the module, a table: what each node became, which kernel computes it, what blocks it",
    )
    parser.add_argument(
        "--mlir-print-debuginfo", action="store_true", help="print locations too: the names of the model's nodes"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
