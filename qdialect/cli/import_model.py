"""``qdialect-import``: a model file as MLIR text."""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

from qdialect import targets
from qdialect.cli import arguments as args
from qdialect.cli import network_tables, terminal
from qdialect.driver.report import NetworkReport, NodeReport, report
from qdialect.frontends.model_files import FORMATS, condition_of, format_of, is_float32
from qdialect.lowering.pipeline.phases import Lowered
from qdialect.passes.pipeline import PassManager
from qdialect.support.diagnostics import InputError
from qdialect.support.interface import kernel_names
from qdialect.support.log import tell_float32
from qdialect.support.options import ImportOptions

# A report of a network as text.

_LONGEST = 72
_NAMES = {"i8": "8-bit", "i16": "16-bit", "i32": "32-bit", "i64": "64-bit", "f32": "float"}


def report_text(report: NetworkReport) -> str:
    """A row for each node, and what it comes to: kernels against nodes, and which tensors lie between them."""
    if report.regions:
        return _of_regions(report)
    if report.lowered is None:
        rows = [(_short(entry.node.title), entry.blocked or "supported") for entry in report.nodes]
        blocked = sum(bool(entry.blocked) for entry in report.nodes)
        return (
            f"{terminal.render_table(('node', 'blocked by'), rows)}\n\n{blocked} of {len(rows)} nodes are not supported"
        )
    rows = [(_short(entry.node.title), _ops(entry), _calls(entry, report.lowered)) for entry in report.nodes]
    return "\n".join(
        [terminal.render_table(("node", "became", "computed by"), rows), "", *_summary(report, report.lowered)]
    )


def _of_regions(report: NetworkReport) -> str:
    """A row for each node and the regions that run it, then the regions."""
    homes: dict[str, list[str]] = {}
    for number, region in enumerate(report.regions):
        for title in region.nodes:
            homes.setdefault(title, []).append(f"#{number} {region.runner}")
    rows = [
        (_short(entry.node.title), ", ".join(homes.get(entry.node.title, ("no region: known while compiling",))))
        for entry in report.nodes
    ]
    return f"{terminal.render_table(('node', 'in region'), rows)}\n\n{network_tables.region_text(report.regions)}"


def _short(title: str) -> str:
    """Names of nodes that converters have fused are as long as what they were fused of."""
    return title if len(title) <= _LONGEST else f"{title[: _LONGEST - 5]}...')"


def _ops(entry: NodeReport) -> str:
    if entry.ops:
        return ", ".join(name.removeprefix("qnn.") for name in entry.ops)
    return f"part of {_short(entry.within)}" if entry.within else "nothing"


def _calls(entry: NodeReport, lowered: Lowered) -> str:
    if entry.calls:
        names = kernel_names(lowered.calls)
        return ", ".join(f"#{number} {lowered.calls[number].label} {names[number]}" for number in entry.calls)
    return "no kernel: known while compiling, or a view of what is there"


def _summary(report: NetworkReport, lowered: Lowered) -> Iterator[str]:
    labels = Counter(call.label for call in lowered.calls)
    calls = ", ".join(f"{count} {label}" for label, count in labels.most_common())
    yield f"{len(report.nodes)} nodes in {len(lowered.calls)} kernel calls ({calls})"
    yield f"{lowered.kernels} distinct kernels, {lowered.arena_bytes} bytes of working memory"
    tensors = ", ".join(f"{count} {_NAMES[element]}" for element, count in report.tensors().most_common())
    yield f"tensors stored between them: {tensors or 'none'}"


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
    return terminal.run("qdialect-import", lambda: _import(_parser().parse_args(arguments)))


def _import(options: argparse.Namespace) -> int:
    path, how = Path(options.model), args.import_options(options)
    args.check_output("--output", options.output, options.model)
    if options.report:
        given = {"--fuse": options.fuse, "--mlir-print-debuginfo": options.mlir_print_debuginfo}
        args.refuse(given, "must be given without --report, which prints no module")
        return _report(options, path, how)
    if options.json:
        raise InputError("--json must be given with --report")
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
    found = {title: report(path, targets.host(), one, options.fallback or "none") for title, one in _cases(path, how)}
    if options.json:
        cases = {title: _json(one) for title, one in found.items()}
        terminal.write_json(options.output, cases.get("", {"branches": cases}))
    else:
        texts = (f"{title}:\n\n" * bool(title) + report_text(one) for title, one in found.items())
        terminal.write_output(options.output, "\n\n".join(texts) + "\n")
    error = next((one.error for one in found.values() if one.error is not None), None)
    if error is not None:
        raise error
    return 0


def _cases(path: Path, how: ImportOptions) -> Iterator[tuple[str, ImportOptions]]:
    """The values of all conditions that are known at run time, as text, and the options that name them."""
    condition = condition_of(path, how)
    if condition is None:
        yield ", ".join(f"{name} = {int(value)}" for name, value in how.branches.items()), how
        return
    for value in (False, True):
        yield from _cases(path, replace(how, branches={**how.branches, condition.name: value}))


def _json(found: NetworkReport) -> dict[str, object]:
    return {"nodes": found.nodes, "calls": found.lowered.calls if found.lowered else (), "regions": found.regions}


class _ListOperators(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        lists = (
            f"operators of {entry.suffix} files:\n"
            + textwrap.fill(", ".join(entry.operators()), 100, initial_indent="  ", subsequent_indent="  ")
            for entry in FORMATS.values()
        )
        terminal.write_output("-", "\n".join(lists) + "\n")
        parser.exit()


def _parser() -> args.CommandParser:
    parser = args.CommandParser(
        "qdialect-import",
        "Import a quantized model file into the qnn dialect, with the arithmetic of its reference kernels.",
        _EXAMPLES.rstrip(),
    )
    parser.add_argument("model", help=f"a {' or '.join(FORMATS)} file")
    parser.add_argument("--list-operators", action=_ListOperators, nargs=0, help="list the operators of each format")
    parser.add_argument(
        "-o", "--output", default="-", metavar="FILE", help="where to write; '-', the default, is stdout"
    )
    args.add_import_arguments(parser)
    args.add_fallback_argument(parser, "none")
    parser.switch("--fuse", help="run fuse-qnn on the module")
    parser.switch(
        "--report",
        help="instead of the module, a table: what each node became, which kernel computes it, what blocks it",
    )
    args.add_json_argument(parser.add_argument)
    parser.switch("--mlir-print-debuginfo", help="print locations too: the names of the model's nodes")
    return parser


if __name__ == "__main__":
    sys.exit(main())
