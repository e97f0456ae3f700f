"""Several modules as one, which takes the inputs of all and gives the outputs of all."""

from __future__ import annotations

from collections.abc import Sequence

from qdialect._mlir import func, ir


def can_be_joined(module: ir.Module) -> bool:
    """Whether `module` is a function of one block, and says nothing of itself."""
    ops = list(module.body.operations)
    return len(ops) == 1 and not len(module.operation.attributes) and len(ops[0].regions[0].blocks) == 1


def joined(modules: Sequence[ir.Module]) -> ir.Module:
    """One module with the ops of all, which lose them; needs their context and a location as the current ones."""
    blocks = [module.body.operations[0].regions[0].blocks[0] for module in modules]
    returns = [list(block.operations)[-1] for block in blocks]
    types = [argument.type for block in blocks for argument in block.arguments]
    joint = ir.Module.create()
    with ir.InsertionPoint(joint.body):
        main = func.FuncOp("main", (types, [value.type for one in returns for value in one.operands]))
        target = main.add_entry_block()
    arguments = iter(target.arguments)
    results: list[ir.Value] = []
    for block, last in zip(blocks, returns, strict=True):
        for argument in block.arguments:
            argument.replace_all_uses_with(next(arguments))
        results += last.operands
        for op in list(block.operations)[:-1]:
            target.append(op)
    with ir.InsertionPoint(target):
        func.ReturnOp(results)
    return joint
