"""A network for another batch, and the proof that it computes for each entry what it did before."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import zip_longest
from logging import getLogger
from pathlib import Path
from types import MappingProxyType

import numpy as np

from qdialect import targets
from qdialect.aot.record import Batch, open_ports, steps_of
from qdialect.dialect import BroadcastOp, build
from qdialect.dialect.constants import CONSTANT_OPS, constant, constant_value
from qdialect.dialect.fields import INTEGERS
from qdialect.dialect.type_constraints import shape_of
from qdialect.driver.batching import rules
from qdialect.driver.batching.rules import RULES, Site, resized
from qdialect.driver.fallback import is_unsupported
from qdialect.frontends.model_files import OpenShapes, format_of, open_shapes
from qdialect.ir import context
from qdialect.ir._mlir import ir
from qdialect.ir.module_text import metadata_of
from qdialect.lowering.ir.functions import error_at, op_error
from qdialect.lowering.ir.lowered import Phase, error_at_module, phase_of, ports, refuse_states, target_name_of
from qdialect.lowering.pipeline.phases import Lowered, lower
from qdialect.lowering.qnn_to_linalg.to_linalg import main_function
from qdialect.passes.inline_outlined import InlineOutlinedPass
from qdialect.passes.outlined import extern_functions
from qdialect.passes.pipeline import PassManager
from qdialect.runtime import compiler, memory
from qdialect.runtime.base import Executable
from qdialect.runtime.batched import BatchedExecutable, tiles
from qdialect.runtime.compiler import CompiledCode, prepared
from qdialect.runtime.constants import placed
from qdialect.runtime.external_calls import External
from qdialect.runtime.native import allocated
from qdialect.runtime.shaped import BatchShapedExecutable
from qdialect.support.diagnostics import NOT_COMPILED, CompileError, ImportModelError, QDialectError, UnusedBatchError
from qdialect.support.interface import Array
from qdialect.support.options import CompileOptions, ImportOptions
from qdialect.targets import Target

_PHASES = (Phase.QNN, Phase.FUSED)


@dataclass(frozen=True)
class BatchNetwork:
    """A network whose inputs have a batch of `batch` entries in their first dimension.

    `inputs` are the inputs that have it; the others are the same for all entries.
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
    refuse_states(module, function)
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
        self._blocks: dict[ir.Value, int] = {}
        """How often its entries follow each other there."""

    def apply(self, inputs: Sequence[bool]) -> None:
        """Change the whole network; `inputs` are the arguments that have the batch."""
        arguments = list(self._block.arguments)
        self._axes = {argument: 0 for argument, has in zip(arguments, inputs, strict=True) if has}
        self._blocks = dict.fromkeys(self._axes, 1)
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
                for name, attribute in site.attributes.items():
                    site.op.attributes[name] = attribute
            results = [value.type for value in end.operands]
            type_ = ir.FunctionType.get([argument.type for argument in arguments], results)
            self._function.attributes["function_type"] = ir.TypeAttr.get(type_)
        # The repeated value is not read any more.
        for op in reversed(body):
            if all(not list(result.uses) for result in op.results):
                op.erase()

    def _site(self, op: ir.Operation) -> Site | None:
        axes = [self._axes.get(value) for value in op.operands]
        if all(axis is None for axis in axes):
            return None
        blocks = {self._blocks[value] for value in op.operands if value in self._blocks}
        site = Site(op, axes, self._batch, self._wanted, min(blocks))
        rule = RULES.get(op.name)
        if rule is None or len(op.results) != 1:
            site.refuse("nothing shows that it does")
        if len(blocks) > 1:
            site.refuse("its operands have the batch in different places of a dimension")
        axis = rule(site)
        assert site.result[axis] % self._batch == 0, "a rule keeps the batch whole"
        self._axes[op.results[0]], self._blocks[op.results[0]] = axis, site.blocks
        return site

    def _check_results(self, end: ir.Operation) -> None:
        for index, value in enumerate(end.operands):
            axis = self._axes.get(value, 0)
            if axis:
                what = f"result {index} of a dynamic batch must have it first, but has it in dimension {axis}"
                raise error_at(end.location, what)
            if self._blocks.get(value, 1) > 1:
                raise error_at(end.location, f"result {index} of a dynamic batch must have its entries together")

    def _change_operands(self, site: Site) -> None:
        for index, axis in site.grown.items():
            value = site.op.operands[index]
            if shape_of(value.type)[axis] % (self._batch * site.blocks):
                site.refuse(f"operand {index} lacks the batch and has {shape_of(value.type)[axis]} elements for it")
            site.op.operands[index] = _Growth(site, axis).of(value)

    def _type(self, value: ir.Value, axis: int) -> ir.Type:
        type_ = ir.RankedTensorType(value.type)
        return ir.RankedTensorType.get(resized(tuple(type_.shape), axis, self._batch, self._wanted), type_.element_type)


# Values without batch, repeated for each entry of one: constants, and what is computed from them alone.


_RULES = (rules.broadcasting, rules.of_one_shape)


@dataclass(frozen=True)
class _Growth:
    """An operand of an op repeated for the batch, which is in dimension `axis` of it."""

    site: Site
    axis: int

    def of(self, value: ir.Value) -> ir.Value:
        """`value` for another batch, before the op.

        Raises `CompileError` where nothing shows that entries are alike.
        """
        axis, owner, user = self.axis, value.owner, self.site.op
        shape = resized(shape_of(value.type), axis, self.site.batch, self.site.wanted)
        if not isinstance(owner, ir.Block) and owner.name in CONSTANT_OPS:
            return self._constant(value, shape)
        if shape_of(value.type)[axis] == 1:
            with ir.InsertionPoint(user):
                element = ir.RankedTensorType(value.type).element_type
                return build(BroadcastOp, value, element=element, loc=user.location, shape=shape).output
        if isinstance(owner, ir.Block):
            self.site.refuse("an input of the network that lacks the batch has its extent")
        operands = list(owner.operands)
        if owner.name != BroadcastOp.OPERATION_NAME and RULES.get(owner.name) not in _RULES:
            self.site.refuse(f"'{owner.name}' op gives it a tensor that lacks the batch and has its extent")
        for index, operand in enumerate(operands):
            at = axis - len(shape) + len(shape_of(operand.type))
            if at >= 0 and shape_of(operand.type)[at] > 1:
                operands[index] = replace(self, axis=at).of(operand)
        attributes = dict(owner.attributes.items())
        if owner.name == BroadcastOp.OPERATION_NAME:
            attributes["shape"] = INTEGERS.to_attribute(shape)
        type_ = ir.RankedTensorType.get(shape, ir.RankedTensorType(value.type).element_type)
        with ir.InsertionPoint(user):
            created = ir.Operation.create(owner.name, [type_], operands, attributes, loc=owner.location)
        return created.results[0]

    def _constant(self, value: ir.Value, shape: Sequence[int]) -> ir.Value:
        array = constant_value(value)
        if array is None:
            self.site.refuse("a constant that lacks the batch and has its extent cannot be read")
        if not any(array.strides):
            elements = np.broadcast_to(array[(0,) * array.ndim], shape)
        else:
            before, after, batch = array.shape[: self.axis], array.shape[self.axis + 1 :], self.site.batch
            entries = array.reshape(*before, self.site.blocks, batch, -1, *after)
            first = entries.take([0], self.axis + 1)
            if not np.array_equal(_bits(np.broadcast_to(first, entries.shape)), _bits(entries)):
                self.site.refuse("a constant differs between the entries of the batch")
            elements = first.repeat(self.site.wanted, self.axis + 1).reshape(shape)
        with ir.InsertionPoint(self.site.op):
            return constant(elements, self.site.op.location)


def _bits(array: Array) -> Array:
    return np.ascontiguousarray(array).view(np.uint8)


# The sizes of batches that a network is compiled for, from which batches of all sizes are made up.

SIZES = (64, 8, 1)

# Intermediate values of more entries than fit a cache are slower, and weights are read once for many rows already.
_LARGEST_ARENA = 16 << 20


def lowered_sizes(network: BatchNetwork, targets: Sequence[Target], threads: int) -> tuple[Batch, list[Lowered]]:
    """The sizes, and the network at phase `llvm` for all of them, for one target after the other.

    Raises `CompileError` for what cannot be lowered, and for a network that is not proven to compute entries alone.
    """
    if extern_functions(network.module):
        return _one_entry(network, targets, threads)
    middle = lower(network.of(SIZES[1]), targets[0], threads=threads)
    growth = SIZES[0] // SIZES[1]
    sizes = SIZES if middle.arena_bytes * growth <= _LARGEST_ARENA else SIZES[1:]
    known = {(targets[0].name, SIZES[1]): middle}
    found = [
        known.get((target.name, size)) or lower(network.of(size), target, threads=threads)
        for target in targets
        for size in sizes
    ]
    return Batch(sizes, network.factors()), found


def _one_entry(network: BatchNetwork, targets: Sequence[Target], threads: int) -> tuple[Batch, list[Lowered]]:
    """The network unchanged, for one entry: extern functions have the shapes in their records."""
    if network.batch != 1:
        what = "batch must be 1 in a module that hands functions to a target, to be dynamic"
        raise error_at_module(network.module, f"{what}, but got {network.batch}: they compute one entry at a time")
    factors = network.factors()
    return Batch((1,), factors), [lower(network.module, target, threads=threads) for target in targets]


# Models with a batch of any size: which inputs have it, and that every size computes the same.

# A batch of one cannot be distinguished from an adjacent extent of 1.
_SIZES = (2, 3)

_READ_EXTENTS = {
    *("If", "Loop", "Pad", "Scan", "Shape", "Size", "Slice", "Squeeze"),
    *("IF", "PAD", "PADV2", "SHAPE", "SLICE", "SQUEEZE", "STRIDED_SLICE", "WHILE"),
    *("constant_pad_nd.default", "slice.Tensor", "squeeze.default", "squeeze.dim", "squeeze.dims", "sym_size.int"),
}
"""Operators that may do something else for an extent of another size: they ask for it, or take it as a bound."""


def read_batched(path: Path, options: ImportOptions, sizes: Sequence[int] = ()) -> BatchNetwork:
    """The model at `path` for batches of any size.

    Where a file leaves the first extents of inputs open, these have the batch; where all is known, all inputs have it.
    Models of two sizes are compared, and where operators may look at the batch those of `sizes`, too.  Raises what
    reading raises, and `CompileError` where models or their inputs depend on the batch otherwise.
    """
    kind = format_of(path)
    if kind.open_shapes is None:
        return fixed_batch(kind.read(path, options))
    try:
        modules = [kind.read(path, replace(options, batch=size)) for size in _SIZES]
    except UnusedBatchError:
        return fixed_batch(kind.read(path, options))
    for module in modules:
        refuse_states(module, main_function(module))
    found = [ports(main_function(module), "arg") for module in modules]
    has_batch = tuple(one.shape != other.shape for one, other in zip(*found, strict=True))
    for one, other, has in zip(*found, has_batch, strict=True):
        if has and (one.shape[1:] != other.shape[1:] or one.shape[0] * _SIZES[1] != other.shape[0] * _SIZES[0]):
            shapes = f"{list(one.shape)} and {list(other.shape)}"
            raise CompileError(f"input '{one.name}' must have the batch in its first extent alone, but got {shapes}")
    networks = [BatchNetwork(module, size, has_batch) for module, size in zip(modules, _SIZES, strict=True)]
    check_alike(networks[0], networks[1])
    for size in sizes if reads_extents(path, options) else ():
        check_alike(BatchNetwork(kind.read(path, replace(options, batch=size)), size, has_batch), networks[0])
    return networks[0]


def reads_extents(path: Path, options: ImportOptions) -> bool:
    """Whether operators of a model may do something else for a batch of another size."""
    return any(node.kind in _READ_EXTENTS for node in format_of(path).nodes(path, options))


def is_of_size(network: BatchNetwork, path: Path, options: ImportOptions) -> bool:
    """Whether the model at `path`, for the batch of `options`, is `network` for that batch."""
    try:
        other = BatchNetwork(format_of(path).read(path, options), options.batch, network.inputs)
        check_alike(other, network)
    except (ImportModelError, CompileError):
        return False
    return True


# A model file for batches of any size, whether they compute the same for an entry or not.

# A model may have no batch of one: it takes a second entry.
_FIRST_SIZES = (1, 2, 3, 8, 64)
_LOG = getLogger("qdialect")


@dataclass(frozen=True)
class BatchCompiler:
    """Compiles a model file for batches."""

    path: Path
    any_size: Callable[[BatchNetwork], Executable]
    """Compiles one network for all of them."""
    one_size: Callable[[ImportOptions], Executable]
    """Compiles the model with all its extents."""

    def executable(self, options: ImportOptions) -> Executable:
        """One network for all batches that are proven to be computed alike, and one for each other that comes.

        Raises `ImportModelError` and `CompileError` for a model that cannot be compiled for a batch of one size either.
        """
        try:
            network = read_batched(self.path, options)
            compiled = self.any_size(network)
        except NOT_COMPILED as error:
            return self._of_each_size(options, error)
        if not reads_extents(self.path, options):
            return compiled
        alike: set[int] = set()

        def of_size(extents: Mapping[str, int]) -> Executable:
            # If inputs have batches of different sizes, the network reports it.
            new = set(extents.values()) - alike - {0}
            if len(new) == 1 and not is_of_size(network, self.path, replace(options, batch=min(new))):
                return self._of(options, extents)
            alike.update(new)
            return compiled

        def check() -> None:
            read_batched(self.path, options, SIZES)

        return BatchShapedExecutable(compiled, self._declared(compiled, options), of_size, check)

    def _of_each_size(self, options: ImportOptions, error: QDialectError) -> Executable:
        if not is_unsupported(error) or not self._batches(options):
            raise error
        first = self._first(options)
        _LOG.info("'%s' is compiled for each batch that it is called with: %s", self.path.name, error.message)

        def check() -> None:
            raise error

        declared = self._declared(first, options)
        return BatchShapedExecutable(first, declared, lambda extents: self._of(options, extents), check)

    def _first(self, options: ImportOptions) -> Executable:
        """The model for the first size that it has; raises for that of one entry where there is none."""
        errors: list[QDialectError] = []
        for size in _FIRST_SIZES:
            try:
                return self.one_size(replace(options, batch=size))
            except NOT_COMPILED as error:
                errors.append(error)
        raise errors[0]

    def _of(self, options: ImportOptions, extents: Mapping[str, int]) -> Executable:
        sizes = ", ".join(f"{name}={size}" for name, size in extents.items())
        _LOG.info("'%s' is compiled for a batch of its own: %s", self.path.name, sizes)
        return self.one_size(replace(options, dims={**options.dims, **extents}))

    def _batches(self, options: ImportOptions) -> set[tuple[str, str]]:
        """Where the batch is: inputs and the file's names of their first extents, unless `dims` gives these a size."""
        opened = open_shapes(self.path, options)
        firsts = {(name, shape[0]) for name, shape in opened.items() if shape and isinstance(shape[0], str)}
        return {(name, extent) for name, extent in firsts if not options.dims.keys() & {f"{name}:0", extent}}

    def _declared(self, compiled: Executable, options: ImportOptions) -> OpenShapes:
        """The shapes of inputs, of which extents of the batch alone are open."""
        opened, batches = open_shapes(self.path, options), self._batches(options)
        names = {extent for _, extent in batches if extent}

        def extent_of(name: str, axis: int, own: int) -> int | str:
            said = opened[name][axis] if name in opened else own
            return said if said in names or (axis == 0 and (name, said) in batches) else own

        ports = {port.name: port.shape for port in compiled.inputs}
        return {name: [extent_of(name, axis, own) for axis, own in enumerate(shape)] for name, shape in ports.items()}


# A network of any batch that was compiled in this process.


class CompiledBatchedExecutable(BatchedExecutable):
    """A network of any batch as machine code of this process."""

    def __init__(
        self,
        lowered: Sequence[Lowered],
        batch: Batch,
        workspaces: int | None = None,
        externals: Mapping[str, External] = MappingProxyType({}),
    ) -> None:
        """`lowered` are at phase `llvm`, for each size of `batch`; raises `CompileError` as `CompiledExecutable`."""
        limit = memory.checked(workspaces)
        smallest = lowered[-1]
        self.batch = batch
        self.inputs = open_ports(smallest.inputs, batch.factors[0])
        self.outputs = open_ports(smallest.outputs, batch.factors[1])
        self.kernels, self.calls = smallest.kernels, smallest.calls
        self.target = target_name_of(smallest.module) or targets.GENERIC.name
        self.metadata = metadata_of(smallest.module)
        self.threads = max(one.threads for one in lowered)
        self.working_memory = max(one.arena_bytes for one in lowered)
        # Sizes of batches may have the same constants.
        contents = [one.constants.tobytes() for one in lowered]
        blocks = {content: placed(one.constants) for content, one in zip(contents, lowered, strict=True)}
        self.constants_bytes = sum(map(len, blocks))
        self._kept = [
            (compiler.kept_for_saving(one.module), blocks[content])
            for content, one in zip(contents, lowered, strict=True)
        ]
        compiled = [
            CompiledCode(one, blocks[content], externals=externals, empties=True)
            for content, one in zip(contents, lowered, strict=True)
        ]
        self._takes_python = any(code.takes_python for code in compiled)
        steps = steps_of((*self.inputs, *self.outputs), sum(batch.factors, ()))
        self._prepare(partial(_Caller, compiled, batch.rows, steps, self.working_memory), limit)

    def library(self, name: str) -> bytes:
        if self._takes_python:
            raise CompileError("network must not call Python functions to be saved, but externals has one")
        return compiler.library([(kept, constants.content()) for kept, constants in self._kept], name, self.batch)


class _Caller:
    """A workspace, and calls for each size of batches that work in it."""

    def __init__(
        self, compiled: Sequence[CompiledCode], rows: Sequence[int], steps: Sequence[int], workspace_bytes: int
    ) -> None:
        self.is_spare = False
        workspace = allocated("working memory", workspace_bytes)
        self._rows, self._steps = rows, steps
        bound = [code.bind([0] * len(steps), workspace) for code in compiled]
        self._calls = {count: (one.writer(len(steps)), one.call) for count, one in zip(rows, bound, strict=True)}

    def call(self, starts: Sequence[int], batch: int) -> None:
        for first, count in tiles(batch, self._rows):
            point_to, call = self._calls[count]
            point_to(*(start + first * step for start, step in zip(starts, self._steps, strict=True)))
            call()


def compile_batched(network: BatchNetwork, options: CompileOptions) -> CompiledBatchedExecutable:
    """Compile a network of any batch for this machine; the errors are those of `compile_module`."""
    memory.checked(options.workspaces)
    chosen, wanted = prepared(network.module, options.target, options.threads)
    batch, lowered = lowered_sizes(network, [chosen], wanted)
    return CompiledBatchedExecutable(lowered, batch, options.workspaces, options.externals)
