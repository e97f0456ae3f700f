"""The sizes of batches that a network is compiled for, from which batches of all sizes are made up."""

from __future__ import annotations

from collections.abc import Sequence

from qdialect.aot.network import Batch
from qdialect.batching.network import BatchNetwork
from qdialect.lowering.lowered import error_at_module
from qdialect.lowering.pipeline import Lowered, lower
from qdialect.passes.outlined import handed_off
from qdialect.target import Target

SIZES = (64, 8, 1)

# Intermediate values of more entries than fit a cache are slower, and weights are read once for many rows already.
_LARGEST_ARENA = 16 << 20


def lowered_sizes(network: BatchNetwork, targets: Sequence[Target], threads: int) -> tuple[Batch, list[Lowered]]:
    """The sizes, and the network at phase `llvm` for all of them, for one target after the other.

    Raises `CompileError` for what cannot be lowered, and for a network that is not proven to compute entries alone.
    """
    if handed_off(network.module):
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
    """The network as it is, for one entry: what goes to a target has the shapes that its library was told."""
    if network.batch != 1:
        what = "batch must be 1 in a module that hands functions to a target, to be dynamic"
        raise error_at_module(network.module, f"{what}, but got {network.batch}: they compute one entry at a time")
    factors = network.factors()
    return Batch((1,), factors), [lower(network.module, target, threads=threads) for target in targets]
