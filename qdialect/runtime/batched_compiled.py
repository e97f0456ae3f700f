"""A network of any batch that was compiled in this process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from qdialect.aot.network import Batch, open_ports, steps_of
from qdialect.batching.network import BatchNetwork
from qdialect.batching.sizes import lowered_sizes
from qdialect.diagnostics import CompileError
from qdialect.lowering.pipeline import Lowered
from qdialect.runtime import memory, saving, workspace_pool
from qdialect.runtime.batched import BatchCode, BatchedExecutable, tiles
from qdialect.runtime.compiler import prepared
from qdialect.runtime.executable import CompiledCode, constants_of
from qdialect.runtime.external_bindings import External
from qdialect.runtime.native import allocated
from qdialect.target import Target


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
        limit = workspace_pool.checked(workspaces)
        smallest = lowered[-1]
        self.batch = batch
        self.inputs = open_ports(smallest.inputs, batch.factors[0])
        self.outputs = open_ports(smallest.outputs, batch.factors[1])
        self.kernels, self.calls = smallest.kernels, smallest.calls
        self.threads = max(one.threads for one in lowered)
        self.working_memory = max(one.arena_bytes for one in lowered)
        # Sizes of batches may have the same constants.
        contents = [one.constants.tobytes() for one in lowered]
        blocks = {content: constants_of(one) for content, one in zip(contents, lowered, strict=True)}
        self.constants_bytes = sum(map(len, blocks))
        sizes = [one.constants.size for one in lowered]
        constants = [blocks[content][:size] for content, size in zip(contents, sizes, strict=True)]
        self._kept = [(saving.kept(one.module), own) for one, own in zip(lowered, constants, strict=True)]
        compiled = [
            CompiledCode(one, blocks[content], externals=externals, empties=True)
            for content, one in zip(contents, lowered, strict=True)
        ]
        self._takes_python = any(code.takes_python for code in compiled)
        steps = steps_of((*self.inputs, *self.outputs), sum(batch.factors, ()))
        self._prepare(_Code(compiled, batch.rows, steps, self.working_memory), limit)

    def library(self, name: str) -> bytes:
        if self._takes_python:
            raise CompileError("network must not call Python functions to be saved, but externals has one")
        return saving.library(self._kept, name, self.batch)


class _Code(BatchCode):
    """The code for each size of batches."""

    def __init__(
        self, compiled: Sequence[CompiledCode], rows: Sequence[int], steps: Sequence[int], workspace_bytes: int
    ) -> None:
        self._compiled, self._rows, self._steps = compiled, rows, steps
        self._workspace_bytes = workspace_bytes

    def caller(self) -> _Caller:
        return _Caller(self._compiled, self._rows, self._steps, allocated("working memory", self._workspace_bytes))


class _Caller:
    """A workspace, and calls for each size of batches that work in it."""

    def __init__(
        self, compiled: Sequence[CompiledCode], rows: Sequence[int], steps: Sequence[int], workspace: memory.Block
    ) -> None:
        self.is_spare = False
        self._rows, self._steps = rows, steps
        bound = [code.bind([0] * len(steps), workspace) for code in compiled]
        self._calls = {count: (one.writer(len(steps)), one.call) for count, one in zip(rows, bound, strict=True)}

    def call(self, starts: Sequence[int], batch: int) -> None:
        for first, count in tiles(batch, self._rows):
            point_to, call = self._calls[count]
            point_to(*(start + first * step for start, step in zip(starts, self._steps, strict=True)))
            call()


def compile_batched(
    network: BatchNetwork,
    *,
    target: str | Target = "host",
    threads: int = 1,
    workspaces: int | None = None,
    externals: Mapping[str, External] = MappingProxyType({}),
) -> CompiledBatchedExecutable:
    """Compile a network of any batch for this machine; the arguments and errors are those of `compile_module`."""
    workspace_pool.checked(workspaces)
    chosen, wanted = prepared(network.module, target, threads)
    batch, lowered = lowered_sizes(network, [chosen], wanted)
    return CompiledBatchedExecutable(lowered, batch, workspaces, externals)
