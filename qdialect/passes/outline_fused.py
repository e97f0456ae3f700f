"""`qnn-outline-fused`: each fused op moves into a function of its own, for an external code generator."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import InitVar, dataclass
from importlib import import_module
from operator import attrgetter
from typing import Any, ClassVar, cast

from qdialect.dialect import FusedConv2DOp, FusedConvTranspose2DOp, FusedDenseOp, FusedMatMulOp, FusedOp
from qdialect.dialect.constants import constant_value
from qdialect.ir._mlir import func, ir
from qdialect.ir.context import functions, joined, name_of
from qdialect.passes import outlined
from qdialect.passes.pattern import GraphPass, Pattern, Replacement, error_at, producer, refuse
from qdialect.passes.registry import register
from qdialect.support.diagnostics import PassError, PipelineError


def merge_outlined(module: ir.Module, target: str) -> None:
    """Merge calls of extern functions of `target`: into each call those whose results nothing outside reads.

    So a region has one result, and no path leaves it and comes back.
    """
    known = outlined.extern_functions(module)
    externs = {name: one for name, one in known.items() if outlined.target_of(one) == target}
    callers = [function for function in functions(module) if not outlined.is_outlined(function)]
    for caller in callers:
        left = [op for op in _calls(caller) if _callee(op) in externs]
        while left:
            region = _region(left[-1], left)
            left = [op for op in left if op not in region]
            if len(region) > 1:
                _merge(caller, region, externs)
    used = {_callee(op) for caller in callers for op in _calls(caller)}
    for name, function in externs.items():
        if name not in used:
            function.erase()


def _region(root: ir.Operation, calls: Sequence[ir.Operation]) -> list[ir.Operation]:
    """`root` and those of `calls`, in order, from which every path leads to it through calls of the region."""
    region = [root]
    # Readers come after their producers: going backwards, the readers of a call are decided before it.
    for call in reversed(calls):
        users = {use.owner.operation for use in call.results[0].uses}
        if call not in region and users and users <= set(region):
            region.append(call)
    return region[::-1]


def _merge(caller: ir.Operation, region: Sequence[ir.Operation], externs: Mapping[str, ir.Operation]) -> None:
    inside = {call.results[0] for call in region}
    operands = [value for call in region for value in call.operands]
    inputs = list(dict.fromkeys(value for value in operands if value not in inside))
    root = region[-1]
    merged = _merged(caller, region, inputs, [externs[_callee(call)] for call in region])
    with ir.InsertionPoint(root), joined([call.location for call in region]):
        created = func.CallOp(merged, inputs)
    root.results[0].replace_all_uses_with(created.results[0])
    for call in reversed(region):
        call.erase()


def _merged(
    caller: ir.Operation, region: Sequence[ir.Operation], inputs: Sequence[ir.Value], members: Sequence[ir.Operation]
) -> func.FuncOp:
    """The function that computes all calls of a region, those of `members`."""
    target, result = outlined.target_of(members[0]), region[-1].results[0]
    with ir.InsertionPoint(caller), joined([call.location for call in region]):
        created, values = _declared(caller, outlined.REGION, inputs, result.type)
        block = created.regions[0].blocks[0]
        with ir.InsertionPoint(block):
            for call, member in zip(region, members, strict=True):
                (values[call.results[0]],) = outlined.inlined(member, [values[operand] for operand in call.operands])
            func.ReturnOp([values[result]])
    created.attributes[outlined.EXTERNAL] = ir.StringAttr.get(outlined.REGION)
    created.attributes[outlined.PARAMETERS] = ir.ArrayAttr.get([one.attributes[outlined.PARAMETERS] for one in members])
    created.attributes[outlined.TARGET] = ir.StringAttr.get(target)
    created.attributes[outlined.SYMBOL] = ir.StringAttr.get(outlined.symbol_for(target, outlined.REGION))
    return created


def _declared(
    caller: ir.Operation, external: str, inputs: Sequence[ir.Value], result: ir.Type
) -> tuple[func.FuncOp, dict[ir.Value, ir.Value]]:
    """A private function of `caller` for `external` that takes `inputs`, and the arguments that these are in it."""
    name = outlined.free_name(caller, f"{name_of(caller)}_{external.removeprefix('qnn.')}")
    created = func.FuncOp(name, ([value.type for value in inputs], [result]), visibility="private")
    return created, dict(zip(inputs, created.add_entry_block().arguments, strict=True))


def _calls(function: ir.Operation) -> list[ir.Operation]:
    blocks = [block for region in function.regions for block in region.blocks]
    return [op.operation for block in blocks for op in block.operations if op.operation.name == "func.call"]


def _callee(call: ir.Operation) -> str:
    return ir.FlatSymbolRefAttr(call.attributes["callee"]).value


Predicate = Callable[[FusedOp], bool | str | None]
"""Whether a code generator takes a fused op, or why not as a text; None is for an op that it takes."""

_NAME = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")


def resolved(predicate: Predicate | str | None, title: str) -> Predicate | None:
    """The function that ``module:function`` names; raises `PipelineError`, which begins with `title`, without one.

    The module is imported as by an import statement, also from the current folder, as by ``python -m``.
    """
    if not isinstance(predicate, str):
        return predicate
    if not predicate:
        return None
    if not _NAME.fullmatch(predicate):
        raise PipelineError(f"{title} must be MODULE:FUNCTION, but got '{predicate}'")
    module, _, function = predicate.partition(":")
    # Installed packages come first.
    sys.path.append("")
    try:
        found = cast("object", attrgetter(function)(import_module(module)))
    except Exception as error:  # An import runs the module, which may raise anything.
        raise PipelineError(f"{title} cannot be found: {type(error).__name__}: {error}") from error
    finally:
        sys.path.remove("")
    if not callable(found):
        raise PipelineError(f"{title} must be a function, but '{predicate}' is of type {type(found).__name__}")
    return cast("Predicate", found)


def text_of(predicate: Predicate | str | None) -> str:
    """``module:function``, empty without a predicate."""
    if predicate is None or isinstance(predicate, str):
        return predicate or ""
    return f"{predicate.__module__}:{getattr(predicate, '__qualname__', type(predicate).__qualname__)}"


def reason_of(predicate: Predicate, op: FusedOp) -> str | None:
    """Why `op` stays, or None; raises `PassError`, at the op, if the predicate raises or returns another type."""
    try:
        answer = cast("object", predicate(op))
    except Exception as error:  # It is the user's code.
        raise _error(op, f"has a predicate that raised {type(error).__name__}: {error}") from error
    if answer is None or answer is True:
        return None
    if answer is False:
        return f"is not taken by {text_of(predicate)}"
    if isinstance(answer, str) and answer:
        return answer
    raise _error(op, f"must have a predicate that returns a bool or a reason, but got {answer!r}")


def _error(op: FusedOp, text: str) -> PassError:
    return error_at(op.operation, f"qnn-outline-fused: '{op.operation.name}' op {text}")


_TARGET = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


class OutlineFused(Replacement[FusedOp]):
    """A fused op becomes a call of a private function that holds it and its constants."""

    roots = tuple(
        op_class.OPERATION_NAME for op_class in (FusedConv2DOp, FusedConvTranspose2DOp, FusedDenseOp, FusedMatMulOp)
    )

    def __init__(self, reason: Callable[[FusedOp], str | None], target: str) -> None:
        """`reason` explains why an op stays."""
        self._reason = reason
        self._target = target

    def check(self, op: FusedOp) -> FusedOp | None:
        if outlined.is_outlined(outlined.function_of(op.operation)):
            return None
        refuse(self._reason(op))
        return op

    def emit(self, op: FusedOp, match: FusedOp) -> ir.Value:
        operands = list(op.operation.operands)
        inputs = list(dict.fromkeys(value for value in operands if constant_value(value) is None))
        created = _outlined(op, operands, inputs)
        if self._target:
            symbol = outlined.symbol_for(self._target, op.operation.name)
            created.attributes[outlined.TARGET] = ir.StringAttr.get(self._target)
            created.attributes[outlined.SYMBOL] = ir.StringAttr.get(symbol)
        return func.CallOp(created, inputs).results[0]


def _outlined(op: FusedOp, operands: Sequence[ir.Value], inputs: Sequence[ir.Value]) -> func.FuncOp:
    """The function that computes `op` from `inputs`; constants among `operands` are in its body."""
    caller = outlined.function_of(op.operation)
    with ir.InsertionPoint(caller), op.location:
        created, values = _declared(caller, op.operation.name, inputs, op.operation.results[0].type)
        with ir.InsertionPoint(created.regions[0].blocks[0]):
            for value in operands:
                if value not in values:
                    owner = producer(value)
                    assert owner is not None, "a constant is no argument"
                    values[value] = owner.operation.clone().results[0]
            clone = op.operation.clone()
            for index, value in enumerate(operands):
                clone.operands[index] = values[value]
            func.ReturnOp(list(clone.results))
    created.attributes[outlined.EXTERNAL] = ir.StringAttr.get(op.operation.name)
    parameters = {name: attribute for name, attribute in op.operation.attributes.items() if "." not in name}
    created.attributes[outlined.PARAMETERS] = ir.DictAttr.get(parameters)
    return created


@register
@dataclass(frozen=True)
class OutlineFusedPass(GraphPass):
    """Move every fused op, with its constants, into a private function of its own.

    The function is tagged for a code generator outside the project: `qnn.external` names the op, `qnn.parameters` holds
    all of its attributes, including every scale and zero point.  Operands that are not constant are arguments.  The
    interpreter evaluates the calls.

    With `target` a target computes the functions: `qnn.external_target` names it, and `qnn.symbol` the C function that
    computes them, such as ``npu_fused_conv2d``.  They are called at run time; `qdialect.compile` takes the library.
    `merge` makes one function, ``npu_region``, of neighbours whose results nothing else reads.  Without a target
    compilation first puts the ops back, as `qnn-inline-outlined` does.

    `symmetric_weights_only` skips ops whose weights have a zero point.  `predicate` is ``module:function``, or from
    Python a function: it gets the op, and returns whether the op is moved, or the reason why not.
    """

    name: ClassVar[str] = "qnn-outline-fused"
    symmetric_weights_only: bool = False
    target: str = ""
    merge: bool = False
    predicate: InitVar[Predicate | str | None] = None

    def __post_init__(self, predicate: Predicate | str | None) -> None:
        if self.target and not _TARGET.fullmatch(self.target):
            wanted = "letters, digits and _ that begin with a letter"
            raise PipelineError(f"option 'target' of '{self.name}' must be {wanted}, but got '{self.target}'")
        if self.merge and not self.target:
            raise PipelineError(f"option 'merge' of '{self.name}' must come with the option 'target'")
        object.__setattr__(self, "_predicate", resolved(predicate, f"option 'predicate' of '{self.name}'"))
        object.__setattr__(self, "predicate", text_of(predicate))

    @classmethod
    def option_kinds(cls) -> dict[str, Any]:
        return {**super().option_kinds(), "predicate": str}

    def patterns(self) -> Sequence[Pattern[Any]]:
        return (OutlineFused(self._match_failure, self.target),)

    def run(self, module: ir.Module) -> None:
        super().run(module)
        if self.merge:
            with module.context:
                merge_outlined(module, self.target)

    def _match_failure(self, op: FusedOp) -> str | None:
        zero_points = [point for point in op.weight_zero_points if point != 0]
        if self.symmetric_weights_only and zero_points:
            return f"must have weights without zero point, but got {zero_points[0]}"
        predicate: Predicate | None = getattr(self, "_predicate", None)
        return reason_of(predicate, op) if predicate else None
