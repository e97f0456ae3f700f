"""A network of the vector phase divided among threads: one parallel region, in which each thread does its part.

Every thread runs through all calls of `main`. Of a call that is worth it each computes a part; others run on one
thread; `omp.barrier` stands where a thread needs what another one has done. Parts are as many as the threads asked
for, and large ones are cut into chunks, which a thread that is done takes from another. Where the runtime gives fewer
threads, one computes several parts: results are the same for every number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from qdialect._mlir import ir
from qdialect.lowering.functions import entry, functions, has_body, name_of
from qdialect.lowering.threads import MIN_CYCLES
from qdialect.lowering.threads.chunks import Division, divided
from qdialect.lowering.threads.elided_barriers import elide_barriers
from qdialect.lowering.threads.loop_nests import KernelFunction, analyse
from qdialect.lowering.threads.network import check_network
from qdialect.lowering.threads.parts import divide
from qdialect.lowering.threads.region import Region
from qdialect.lowering.threads.schedule import NetworkCall, ScheduledCall, network_calls, schedule
from qdialect.lowering.threads.thread_memory import ThreadMemory, has_counters
from qdialect.lowering.upstream import load_kernel_dialects, run_passes

_TRANSFER_CYCLES = 0.1
"""Of a byte that a kernel on one thread reads or writes: half of what a divided kernel wrote, or is to read, is in the
other core's cache, from where a line of 64 bytes takes some 12 cycles."""

# Nothing waits for a kernel that reads nothing, and what it writes stays with the thread that goes on with it.
_FILL_SHARE = 0.05

_TIDY = "builtin.module(canonicalize,cse)"


def to_threads(module: ir.Module, threads: int, min_cycles: int = MIN_CYCLES) -> int:
    """Divide the network among `threads` threads, in place; nothing changes where no call is worth it,
    or where a kernel may touch memory that it is not given.

    A kernel is worth it from `min_cycles` cycles on.

    Gives the bytes by which its working memory grows: threads have scratch memory and counters of their own.  Raises
    `CompileError` for a `main` that does more than call kernels.
    """
    if threads == 1:
        return 0
    load_kernel_dialects(module)
    with module.context, ir.Location.unknown():
        main = entry(module)
        others = {name_of(function): function for function in functions(module) if function != main}
        check_network(main, others)
        kernels = {name: analyse(function) for name, function in others.items() if has_body(function)}
        if any(kernel.is_open for kernel in kernels.values()):
            return 0
        found = network_calls(main, kernels)
        memory = len(main.regions[0].blocks[0].arguments) - 1
        divisions = _divisions(kernels, found, memory, threads, min_cycles)
        if not divisions:
            return 0
        calls = list(elide_barriers(schedule(found, frozenset(divisions), threads), divisions, threads))
        counters = _counters(calls, divisions) if has_counters(main) else {}
        for chosen in divisions.values():
            divide(chosen.kernel, chosen.partitions)
        own = ThreadMemory(main, [kernels[name] for name in divisions], threads, len(counters))
        Region(module, main, threads, own, divisions, counters).fill(calls)
        run_passes(module, _TIDY, "qnn-to-threads")
    return own.growth


def _divisions(
    kernels: Mapping[str, KernelFunction], found: Sequence[NetworkCall], memory: int, threads: int, min_cycles: int
) -> dict[str, Division]:
    """How each kernel that is worth it is cut; results lie in the network's argument `memory`."""
    aliased = {network_call.kernel.name for network_call in found if network_call.is_aliased}
    moved = {network_call.kernel.name: network_call.moved(memory) for network_call in found}
    chosen: dict[str, Division] = {}
    for name, kernel in kernels.items():
        reads = any(not access.is_write for access in kernel.accesses)
        worth = min_cycles if reads else min_cycles * _FILL_SHARE
        cost = kernel.cost + _TRANSFER_CYCLES * moved.get(name, 0)
        if cost < worth or name in aliased or not kernel.loop_nests:
            continue
        division = divided(kernel, found, threads, min_cycles)
        if division:
            chosen[name] = division
    return chosen


def _counters(calls: Sequence[ScheduledCall], divisions: Mapping[str, Division]) -> dict[ir.Operation, int]:
    """The calls whose chunks are counted, and which counter each has: after the first barrier, when all are clear."""
    waits = next((i for i, scheduled in enumerate(calls) if scheduled.waits), len(calls))
    counted = [
        scheduled.call.op
        for scheduled in calls[waits:]
        if scheduled.thread is None and divisions[scheduled.call.kernel.name].chunks > 1
    ]
    return {op: i for i, op in enumerate(counted)}
