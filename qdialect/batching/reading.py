"""Models with a batch of any size: which inputs have it, and that every size computes the same."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from qdialect._mlir import ir
from qdialect.batching.network import BatchNetwork, check_alike, fixed_batch
from qdialect.diagnostics import InputError
from qdialect.interface import Port
from qdialect.lowering.lowered import ports
from qdialect.lowering.qnn_to_linalg import main_function
from qdialect.model_files import ImportOptions, format_of

# A batch of one is not told apart from an extent of 1 beside it.
_SIZES = (2, 3)


def read_batched(path: Path, options: ImportOptions) -> BatchNetwork:
    """The model at `path` for batches of any size.

    Where a file leaves the first extents of inputs open, these have the batch; where all is known, all inputs have it.
    Raises what reading raises, `InputError` for a model whose ports depend on the batch otherwise, and `CompileError`
    where models of two sizes differ.
    """
    kind = format_of(path)
    if kind.open_shapes is None:
        return fixed_batch(kind.read(path, options))
    modules = [kind.read(path, replace(options, batch=size)) for size in _SIZES]
    found = [_ports(module) for module in modules]
    has_batch = tuple(one.shape != other.shape for one, other in zip(*found, strict=True))
    if not any(has_batch):
        return fixed_batch(modules[0])
    for one, other, has in zip(*found, has_batch, strict=True):
        if has and (one.shape[1:] != other.shape[1:] or one.shape[0] * _SIZES[1] != other.shape[0] * _SIZES[0]):
            shapes = f"{list(one.shape)} and {list(other.shape)}"
            raise InputError(f"input '{one.name}' must have the batch in its first extent alone, but got {shapes}")
    networks = [BatchNetwork(module, size, has_batch) for module, size in zip(modules, _SIZES, strict=True)]
    check_alike(networks[0], networks[1])
    _check_one(networks[0].of(1), kind.read(path, replace(options, batch=1)))
    return networks[0]


def _check_one(found: ir.Module, alone: ir.Module) -> None:
    """Raise `InputError` where results of one entry have another shape in a model that is read for it alone."""
    for one, other in zip(_ports(found, "res"), _ports(alone, "res"), strict=True):
        if one.shape != other.shape:
            shapes = f"{list(other.shape)} instead of {list(one.shape)}"
            raise InputError(
                f"output '{one.name}' must have the batch first to have a dynamic batch, but has {shapes} for 1 entry: "
                "a Squeeze without axes removes it"
            )


def _ports(module: ir.Module, kind: str = "arg") -> tuple[Port, ...]:
    return ports(main_function(module), kind)
