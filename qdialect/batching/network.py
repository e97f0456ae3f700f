"""A network for another batch, and the proof that it computes for each entry what it did before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from qdialect import context
from qdialect._mlir import ir
from qdialect.batching.growth import grown
from qdialect.batching.site import RULES, Site, resized
from qdialect.dialect.type_constraints import shape_of
from qdialect.lowering.errors import error_at, op_error
from qdialect.lowering.lowered import error_at_module, phase_of, ports
from qdialect.lowering.phase import Phase
from qdialect.lowering.qnn_to_linalg import main_function
from qdialect.passes.inline_outlined import InlineOutlinedPass
from qdialect.pipeline import PassManager

_PHASES = (Phase.QNN, Phase.FUSED)


@dataclass(frozen=True)
class BatchNetwork:
    """A network whose inputs have a batch of `batch` entries in their first dimension.

    `inputs` say which of the inputs have it; the others are the same for all entries.
    """

    module: ir.Module
    batch: int
    inputs: tuple[bool, ...]

    def of(self, wanted: int) -> ir.Module:
        """The network for `wanted` entries.

        Raises `CompileError` at the first op that is not proven to compute each entry alone, and for a result that has
        the batch elsewhere than in its first dimension.
        """
        phase = phase_of(self.module)
        if phase not in _PHASES:
            raise error_at_module(self.module, f"a module with a dynamic batch must be at phase qnn, but got {phase}")
        copy = context.copy(self.module)
        PassManager(InlineOutlinedPass(), verify=False).run(copy)
        _Change(main_function(copy), self.batch, wanted).apply(self.inputs)
        context.verify(copy)
        return copy

    def factors(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Elements of the first dimension for an entry, 0 where there is no batch: of each input and each result."""
        modules = [self.of(batch) for batch in (1, 2)]
        functions = [main_function(module) for module in modules]
        found: list[tuple[int, ...]] = []
        for kind in ("arg", "res"):
            one, two = (ports(function, kind) for function in functions)
            found.append(tuple(_factor(a.shape, b.shape) for a, b in zip(one, two, strict=True)))
        return found[0], found[1]


def _factor(one: Sequence[int], two: Sequence[int]) -> int:
    return one[0] if tuple(one) != tuple(two) else 0


def fixed_batch(module: ir.Module) -> BatchNetwork:
    """A module of known shapes, all of whose inputs have the batch first; raises `CompileError` where they do not."""
    function = main_function(module)
    found = ports(function, "arg")
    extents = {port.shape[0] if port.shape else 0 for port in found}
    if len(extents) != 1 or extents == {0}:
        shapes = ", ".join(f"'{port.name}' has {list(port.shape)}" for port in found) or "there is no input"
        raise error_at(
            function.location, f"inputs must have the same first extent to have a dynamic batch, but {shapes}"
        )
    return BatchNetwork(module, extents.pop(), (True,) * len(found))


def check_alike(one: BatchNetwork, other: BatchNetwork) -> None:
    """Raise `CompileError` where two networks, for batches of two sizes, do not compute the same for an entry."""
    modules = [network.of(one.batch) for network in (one, other)]
    operations = [main_function(module).regions[0].blocks[0].operations for module in modules]
    for own, found in zip_longest(*operations):
        if own is None or found is None or str(own) != str(found):
            what = f"but differs between batches of {one.batch} and {other.batch}"
            differing = own or found
            assert differing is not None, "the longer one ends first"
            raise op_error(differing.operation, f"must be the same for every batch, {what}")


class _Change:
    """A function that becomes one for another batch."""

    def __init__(self, function: ir.Operation, batch: int, wanted: int) -> None:
        self._function, self._batch, self._wanted = function, batch, wanted
        self._block = function.regions[0].blocks[0]
        self._axes: dict[ir.Value, int] = {}
        """The dimension of each value that has the batch."""

    def apply(self, inputs: Sequence[bool]) -> None:
        """Change all of it, where `inputs` say which arguments have the batch."""
        arguments = list(self._block.arguments)
        self._axes = {argument: 0 for argument, has in zip(arguments, inputs, strict=True) if has}
        *body, end = [op.operation for op in self._block.operations]
        with self._function.context, ir.Location.unknown():
            # All is decided before anything changes: rules read shapes.
            sites = [site for op in body if (site := self._site(op))]
            self._check_results(end)
            for site in sites:
                self._change_operands(site)
            for value, axis in self._axes.items():
                value.set_type(self._type(value, axis))
            for site in sites:
                _set_attributes(site.op, site.attributes)
            results = [value.type for value in end.operands]
            type_ = ir.FunctionType.get([argument.type for argument in arguments], results)
            self._function.attributes["function_type"] = ir.TypeAttr.get(type_)
        # What was repeated is not read any more.
        for op in reversed(body):
            if all(not list(result.uses) for result in op.results):
                op.erase()

    def _site(self, op: ir.Operation) -> Site | None:
        axes = [self._axes.get(value) for value in op.operands]
        if all(axis is None for axis in axes):
            return None
        site = Site(op, axes, self._batch, self._wanted)
        rule = RULES.get(op.name)
        if rule is None or len(op.results) != 1:
            site.refuse("nothing shows that it does")
        axis = rule(site)
        assert site.result[axis] % self._batch == 0, "a rule keeps the batch whole"
        self._axes[op.results[0]] = axis
        return site

    def _check_results(self, end: ir.Operation) -> None:
        for index, value in enumerate(end.operands):
            axis = self._axes.get(value, 0)
            if axis:
                what = f"result {index} of a dynamic batch must have it first, but has it in dimension {axis}"
                raise error_at(end.location, what)

    def _change_operands(self, site: Site) -> None:
        for index, axis in site.grown.items():
            value = site.op.operands[index]
            if shape_of(value.type)[axis] % self._batch:
                site.refuse(f"operand {index} lacks the batch and has {shape_of(value.type)[axis]} elements for it")
            site.op.operands[index] = grown(value, axis, self._batch, self._wanted, site.op)

    def _type(self, value: ir.Value, axis: int) -> ir.Type:
        type_ = ir.RankedTensorType(value.type)
        return ir.RankedTensorType.get(resized(tuple(type_.shape), axis, self._batch, self._wanted), type_.element_type)


def _set_attributes(op: ir.Operation, attributes: Mapping[str, ir.Attribute]) -> None:
    for name, attribute in attributes.items():
        op.attributes[name] = attribute
