"""Models with a batch of any size: which inputs have it, and that every size computes the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from qdialect._mlir import ir
from qdialect.batching.network import BatchNetwork, check_alike, fixed_batch
from qdialect.diagnostics import CompileError, ImportModelError, UnusedBatchError
from qdialect.interface import Port
from qdialect.lowering.lowered import ports
from qdialect.lowering.qnn_to_linalg import main_function
from qdialect.model_files import ImportOptions, format_of

# A batch of one is not told apart from an extent of 1 beside it.
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
    found = [_ports(module) for module in modules]
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
    """Whether the model at `path` for the batch that `options` say is `network` for that batch."""
    try:
        other = BatchNetwork(format_of(path).read(path, options), options.batch, network.inputs)
        check_alike(other, network)
    except (ImportModelError, CompileError):
        return False
    return True


def _ports(module: ir.Module) -> tuple[Port, ...]:
    return ports(main_function(module), "arg")
