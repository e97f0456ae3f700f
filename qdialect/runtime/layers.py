"""The layers of a network made visible: a variant that also returns what lies between them."""

from __future__ import annotations

from qdialect import context
from qdialect._mlir import ir
from qdialect.lowering.qnn_to_linalg import main_function
from qdialect.pipeline import PassManager


def with_layers(module: ir.Module, attribute: str) -> tuple[ir.Module, tuple[int, ...]]:
    """A fused copy of `module` that returns, after its results, those of every op which has the integer `attribute`.

    Gives that module and the attribute's values, in order: with ``qnn.tensor``, which the .tflite importer sets, the
    numbers of the file's tensors. Fusion comes first, so that the layers are those of the network as it is compiled.
    """
    copy = context.copy(module)
    PassManager("fuse-qnn").run(copy)
    function = main_function(copy)
    operations = [op.operation for op in function.regions[0].blocks[0].operations]
    seen = [op for op in operations if attribute in op.attributes]
    return_also(function, operations[-1], [op.results[0] for op in seen])
    context.verify(copy)
    return copy, tuple(ir.IntegerAttr(op.attributes[attribute]).value for op in seen)


def return_also(function: ir.Operation, last: ir.Operation, values: list[ir.Value]) -> None:
    """Let `function`, which ends in `last`, return `values` after its own results."""
    returned = [*last.operands, *values]
    with ir.InsertionPoint(last), last.location:
        ir.Operation.create("func.return", operands=returned)
    last.erase()
    with function.context:
        inputs = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value).inputs
        type_ = ir.FunctionType.get(inputs, [value.type for value in returned])
        function.attributes["function_type"] = ir.TypeAttr.get(type_)
        if "res_attrs" in function.attributes:
            named = list(ir.ArrayAttr(function.attributes["res_attrs"]))
            function.attributes["res_attrs"] = ir.ArrayAttr.get([*named, *[ir.DictAttr.get({})] * len(values)])
