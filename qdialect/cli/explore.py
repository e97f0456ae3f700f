"""``qdialect-explore``: a page that shows a network from its nodes down to the instructions of its kernels."""

from __future__ import annotations

import base64
import gzip
import json
import sys
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

from qdialect.cli import arguments as args
from qdialect.cli import terminal
from qdialect.cli.explorer.data import Explored, explored
from qdialect.cli.explorer.main import node_data
from qdialect.frontends.model_files import FORMATS
from qdialect.runtime.compiler import check_target
from qdialect.support.diagnostics import CompileError, InputError
from qdialect.support.files import write_files
from qdialect.support.options import ImportOptions
from qdialect.targets import resolve

PROGRAM = "qdialect-explore"
_EXAMPLES = """\
The page is one file, which needs nothing else: graphs before and after fusion, each kernel in every phase, its
register tile and the others, its hot loop, and measured times. PAGE.html#kernel=NAME opens it at a kernel.

examples:
  qdialect-explore model.tflite -o page.html              compile, measure, write the page
  qdialect-explore model.onnx -o page.html --target avx2  code of another CPU that this machine has the features of
  qdialect-explore model.onnx -o page.html --no-measure   without times
  qdialect-explore model.tflite -o data.json              data.time.json, data.bound.json, data.kernel.json and
                                                          data.runner.json, for the nodes in Google's Model Explorer
"""


class Arguments(args.ImportArguments):
    """The command line."""

    output: str
    target: str
    mattr: str | None
    no_measure: bool


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit status."""
    options = _parser().parse_args(arguments, namespace=Arguments())
    return terminal.run(PROGRAM, lambda: _explore(options, args.import_options(options)))


def _parser() -> args.CommandParser:
    parser = args.CommandParser(PROGRAM, "Show a quantized model from its nodes down to instructions.", _EXAMPLES)
    parser.add_argument("model", help=f"a {', '.join(FORMATS)} or .mlirbc file")
    parser.add_argument(
        "-o", "--output", required=True, metavar="FILE", help="the page, as .html, or node data, as .json"
    )
    args.add_import_arguments(parser)
    args.add_target_arguments(parser.add_argument)
    parser.switch("--no-measure", help="call nothing: there are no times")
    return parser


def _explore(options: Arguments, importing: ImportOptions) -> int:
    path = Path(options.output)
    if path.suffix not in (".html", ".json"):
        raise InputError(f"--output must name an .html or .json file, but got '{options.output}'")
    args.check_output("--output", options.output, options.model)
    target, is_measured = resolve(args.target_name(options)), not options.no_measure
    try:
        check_target(target)
    except CompileError as error:
        if is_measured:
            terminal.say(f"{PROGRAM}: warning: nothing is measured: {error}")
        is_measured = False
    found = explored(Path(options.model), target, importing, is_measured=is_measured, progress=terminal.progress)
    if path.suffix == ".json":
        contents = {path.with_suffix(f".{kind}.json"): json.dumps(one) for kind, one in node_data(found).items()}
    else:
        contents = {path: page(found)}
    write_files({name: text.encode(errors="replace") for name, text in contents.items()})
    counts = f"{len(found.nodes)} nodes, {len(found.ops)} fused ops, {len(found.calls)} kernel calls"
    print(f"wrote {', '.join(map(str, contents))}: {counts}")
    return 0


def page(found: Explored) -> str:
    """The page as HTML, whose texts are compressed."""
    texts = gzip.compress(json.dumps(found.texts).encode(), mtime=0)
    parts = {
        "TITLE": found.title.replace("&", "&amp;").replace("<", "&lt;"),
        "STYLE": _asset("page.css"),
        # No string of it ends the element of the page that it stands in.
        "DATA": json.dumps(found.page()).replace("<", "\\u003c"),
        "TEXTS": base64.b64encode(texts).decode(),
        "LAYOUT": _asset("dagre.min.js"),
        "SCRIPT": _asset("page.js"),
    }
    return "".join(parts.get(part, part) for part in _asset("page.html").split("@@"))


def _asset(name: str) -> str:
    return resources.files("qdialect.cli.explorer").joinpath(name).read_text(encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
