"""``qdialect-import``: a model file as MLIR text."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from qdialect.cli import terminal
from qdialect.frontends import onnx, tflite
from qdialect.pipeline import PassManager

_EXAMPLES = f"""\
examples:
  qdialect-import model.tflite                            print the module
  qdialect-import model.tflite -o model.mlir              write it to a file
  qdialect-import model.tflite --fuse -o model.mlir       one op for each kernel
  qdialect-import model.tflite | qdialect-opt --fuse-qnn  the same through a pipe
  qdialect-import model.onnx --batch 8                    an .onnx model, its open batch set to 8

operators of .tflite files: {", ".join(tflite.supported_operators())}

operators of .onnx files: {", ".join(onnx.supported_operators())}
"""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """End as every other error does: one line, exit status 1."""
        self.exit(1, f"{self.prog}: error: {message}\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit status."""
    options = _parser().parse_args(arguments)
    return terminal.run("qdialect-import", lambda: _import(options))


def _import(options: argparse.Namespace) -> int:
    is_onnx = Path(options.model).suffix == ".onnx"
    module = onnx.import_onnx(options.model, batch=options.batch) if is_onnx else tflite.import_tflite(options.model)
    if options.fuse:
        PassManager("fuse-qnn").run(module)
    text = module.operation.get_asm(enable_debug_info=options.mlir_print_debuginfo)
    terminal.write_output(options.output, text)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="qdialect-import",
        description="Import a quantized model file into the qnn dialect, with the arithmetic of its reference kernels.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("model", help="a .tflite or .onnx file")
    parser.add_argument(
        "-o", "--output", default="-", metavar="FILE", help="where to write; '-', the default, is stdout"
    )
    parser.add_argument(
        "--batch", type=int, default=1, metavar="N", help="first extent of .onnx inputs that leave it open (default 1)"
    )
    parser.add_argument("--fuse", action="store_true", help="run fuse-qnn on the module")
    parser.add_argument(
        "--mlir-print-debuginfo", action="store_true", help="print locations too: the names of the model's nodes"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
