"""A model file for batches of any size, whether they compute the same for an entry or not."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from logging import getLogger
from pathlib import Path
from types import MappingProxyType

from qdialect import targets
from qdialect.aot.record import Batch, open_ports, steps_of
from qdialect.driver.batching.network import SIZES, BatchNetwork, is_of_size, lowered_sizes, read_batched, reads_extents
from qdialect.driver.fallback import is_unsupported
from qdialect.frontends.model_files import OpenShapes, open_shapes
from qdialect.ir.module_text import metadata_of
from qdialect.lowering.ir.lowered import target_name_of
from qdialect.lowering.pipeline.phases import Lowered
from qdialect.runtime import compiler, memory
from qdialect.runtime.base import Executable
from qdialect.runtime.batched import BatchedExecutable, tiles
from qdialect.runtime.compiler import CompiledCode, prepared
from qdialect.runtime.constants import placed
from qdialect.runtime.external_calls import External
from qdialect.runtime.native import allocated
from qdialect.runtime.shaped import BatchShapedExecutable
from qdialect.support.diagnostics import NOT_COMPILED, CompileError, QDialectError
from qdialect.support.options import CompileOptions, ImportOptions

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
