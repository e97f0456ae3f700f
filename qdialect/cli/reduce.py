"""``qdialect-reduce``: a smaller model that shows the same fault."""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from qdialect.cli import terminal
from qdialect.cli.arguments import CommandParser, check_output
from qdialect.support.diagnostics import InputError
from qdialect.support.files import read_bytes

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto, ValueInfoProto

    from qdialect.ir._mlir import ir

_EXAMPLES = """\
examples:
  qdialect-reduce model.mlir --test ./is_wrong.sh -o small.mlir   the script exits with 0 for a file with the fault
  qdialect-reduce model.onnx --test 'python is_wrong.py' -o small.onnx
  qdialect-reduce model.mlir --test 'not qdialect-opt --fuse-qnn'  a module for which a command fails
"""
# Values of larger graphs are tried at this many places first, and each alone later.
_PLACES = 16


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit status."""
    options = _parser().parse_args(arguments)
    return terminal.run("qdialect-reduce", lambda: _reduce(options))


def _parser() -> argparse.ArgumentParser:
    parser = CommandParser(
        "qdialect-reduce",
        "Make a model smaller while a command, which gets the path of a file, exits with 0 for it.\n\n"
        "Results are replaced by values that are computed earlier, and values by inputs, as long as the command still\n"
        "finds in the rest what it looks for.",
        _EXAMPLES,
    )
    parser.add_argument("model", help="a .mlir or .onnx file")
    parser.add_argument("--test", required=True, metavar="COMMAND", help="exits with 0 for a file that shows the fault")
    parser.add_argument("--seconds", type=float, default=60, help="after which a test is ended and counts as failed")
    parser.add_argument(
        "-o", "--output", default="-", metavar="FILE", help="where to write; '-', the default, is stdout"
    )
    return parser


def _reduce(options: argparse.Namespace) -> int:
    path = Path(options.model)
    check_output("--output", options.output, options.model)
    if path.suffix.lower() not in _GRAPHS:
        raise InputError(f"'{path}' must be a {' or '.join(_GRAPHS)} file")
    content = read_bytes(path)
    with TemporaryDirectory() as folder:
        test = _Test(shlex.split(options.test), Path(folder) / f"candidate{path.suffix}", options.seconds)
        if not test.passes(content):
            raise InputError(f"'{options.test}' must exit with 0 for '{path}'; it is given the path of a copy")
        smallest = reduced(_GRAPHS[path.suffix.lower()], content, test)
    terminal.write_output(options.output, smallest)
    return 0


class _Test:
    """The user's command."""

    def __init__(self, command: Sequence[str], path: Path, seconds: float) -> None:
        self._command, self._path, self._seconds = [*command, str(path)], path, seconds

    def passes(self, content: bytes) -> bool:
        """Whether the command finds in a file of this content what it looks for."""
        self._path.write_bytes(content)
        try:
            ended = subprocess.run(self._command, capture_output=True, timeout=self._seconds, check=False)
        except subprocess.TimeoutExpired:
            return False
        except OSError as error:
            raise InputError(f"'{shlex.join(self._command)}' cannot be run: {error.strerror}") from error
        return ended.returncode == 0


class Graph(ABC):
    """A model that is cut; each change leaves out what nothing needs any more."""

    def __init__(self, content: bytes) -> None:
        self.content = content

    @abstractmethod
    def size(self) -> int:
        """The number of values that are computed."""

    @abstractmethod
    def returning(self, number: int) -> bytes:
        """The model whose one result is the value `number`, from 0 in the order of the computation."""

    @abstractmethod
    def given(self, number: int) -> bytes | None:
        """The model with an input in the place of the value `number`; none where its type is unknown."""


def reduced(kind: type[Graph], content: bytes, test: _Test) -> bytes:
    """The smallest model found: no single change makes it smaller and leaves the test passing."""
    while True:
        terminal.progress(f"{kind(content).size()} values")
        smaller = next((one for one in _candidates(kind(content)) if test.passes(one)), None)
        if smaller is None:
            return content
        content = smaller


def _candidates(graph: Graph) -> Iterator[bytes]:
    """Smaller models, those that leave out most first."""
    size = graph.size()
    order = list(dict.fromkeys([*range(0, size, max(1, size // _PLACES)), *range(size)]))
    makers = [(graph.returning, order), (graph.given, [size - 1 - number for number in order])]
    for make, numbers in makers:
        for number in numbers:
            found = make(number)
            if found is not None and type(graph)(found).size() < size:
                yield found


class _Module(Graph):
    """The function ``main`` of an MLIR module, or its only function."""

    def size(self) -> int:
        return len(self._values(self._parsed()))

    def returning(self, number: int) -> bytes:
        module = self._parsed()
        function = _function(module)
        block = function.regions[0].blocks[0]
        last = list(block.operations)[-1]
        return self._finished(module, last, [self._values(module)[number]])

    def given(self, number: int) -> bytes | None:
        module = self._parsed()
        block = _function(module).regions[0].blocks[0]
        value = self._values(module)[number]
        last = list(block.operations)[-1]
        value.replace_all_uses_with(block.add_argument(value.type, last.location))
        return self._finished(module, last, list(last.operands))

    def _parsed(self) -> ir.Module:
        from qdialect.frontends.full_contexts import parse

        return parse(self.content.decode())

    def _values(self, module: ir.Module) -> list[ir.Value]:
        """Results of ops that read something: a constant is as small as an input."""
        ops = list(_function(module).regions[0].blocks[0].operations)[:-1]
        return [value for op in ops if len(op.operands) for value in op.results]

    def _finished(self, module: ir.Module, last: ir.Operation | ir.OpView, results: Sequence[ir.Value]) -> bytes:
        """The text, with other results, without ops and arguments that nothing reads."""
        from qdialect.ir._mlir import func, ir

        function = _function(module)
        block = function.regions[0].blocks[0]
        with last.location, ir.InsertionPoint(last):
            func.ReturnOp(list(results))
        last.operation.erase()
        for op in list(block.operations)[-2::-1]:
            if not any(list(value.uses) for value in op.results):
                op.operation.erase()
        for index in range(len(block.arguments) - 1, -1, -1):
            if not list(block.arguments[index].uses) and len(block.arguments) > 1:
                block.erase_argument(index)
        inputs = [argument.type for argument in block.arguments]
        with module.context:
            kind = ir.FunctionType.get(inputs, [value.type for value in list(block.operations)[-1].operands])
            function.attributes["function_type"] = ir.TypeAttr.get(kind)
            for name in ("arg_attrs", "res_attrs"):
                if name in function.attributes:
                    del function.attributes[name]
        return f"{module}".encode()


def _function(module: ir.Module) -> ir.Operation:
    functions = [op.operation for op in module.body.operations if op.operation.name == "func.func"]
    named = [one for one in functions if str(one.attributes["sym_name"]) == '"main"']
    if not (named or functions):
        raise InputError("module must have a function")
    return (named or functions)[0]


class _OnnxModel(Graph):
    """The main graph of an ONNX model."""

    def size(self) -> int:
        return len(self._names(self._parsed()))

    def returning(self, number: int) -> bytes:
        from onnx import helper

        model = self._parsed()
        name = self._names(model)[number]
        declared = self._types().get(name) or helper.make_empty_tensor_value_info(name)
        del model.graph.output[:]
        model.graph.output.append(declared)
        return _pruned(model)

    def given(self, number: int) -> bytes | None:
        model = self._parsed()
        name = self._names(model)[number]
        declared = self._types().get(name)
        if declared is None or not declared.type.tensor_type.HasField("shape"):
            return None
        for node in model.graph.node:
            for index, output in enumerate(node.output):
                if output == name:
                    node.output[index] = ""
        model.graph.input.append(declared)
        return _pruned(model)

    def _parsed(self) -> ModelProto:
        from onnx import ModelProto

        return ModelProto.FromString(self.content)

    def _types(self) -> dict[str, ValueInfoProto]:
        """By name what ONNX infers of values."""
        from onnx import shape_inference

        graph = shape_inference.infer_shapes(self._parsed()).graph
        return {one.name: one for one in (*graph.value_info, *graph.output)}

    def _names(self, model: ModelProto) -> list[str]:
        return [name for node in model.graph.node for name in node.output if name]


def _pruned(model: ModelProto) -> bytes:
    """Without nodes, inputs and constants that no result needs."""
    graph = model.graph
    needed = {one.name for one in graph.output}
    for node in reversed(list(graph.node)):
        if needed.isdisjoint(node.output):
            graph.node.remove(node)
            continue
        needed |= {name for name in node.input if name} | _read_inside(node)
    for inputs in (graph.input, graph.value_info):
        kept = [one for one in inputs if one.name in needed]
        del inputs[:]
        inputs.extend(kept)
    constants = [one for one in graph.initializer if one.name in needed]
    del graph.initializer[:]
    graph.initializer.extend(constants)
    return model.SerializeToString()


def _read_inside(node: NodeProto) -> set[str]:
    """The values of the graph around an If or a Loop that their bodies may read."""
    found: set[str] = set()
    for attribute in node.attribute:
        for inner in attribute.g.node:
            found |= set(inner.input) | _read_inside(inner)
        found |= {one.name for one in attribute.g.output}
    return found


_GRAPHS: dict[str, type[Graph]] = {".mlir": _Module, ".onnx": _OnnxModel}


if __name__ == "__main__":
    sys.exit(main())
