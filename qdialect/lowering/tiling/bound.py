"""The cycles that a kernel needs at least on the busiest port of a core, from its code at the phase `x86`.

Of every op on vectors, times the trips of the loops around it, there are counted in whole vectors

  products      dot products, at the core's dot products a cycle
  loads         reads of memory, at its loads a cycle
  stores        writes, one a cycle
  instructions  dot products and all that computes or moves lanes, at its instructions a cycle

and the longest of the four is the bound: no order of instructions is faster, if LLVM needs as many.  Constants, casts
and extensions, which loads do on the way, count nothing; neither do addresses and the loops themselves.

A core looks some hundred instructions ahead, so that the body of one loop overlaps with itself and little with that of
the next.  What a kernel is predicted to take is therefore the sum of the bounds of its loop bodies, each for itself:

  predicted(body) = trips * (bound of what is in no inner loop + sum of predicted(inner loops)),

and at least what its bytes take to come: those that exceed the first level at half of the second one's bandwidth, as
data and results share it, and those that exceed the second level at a quarter.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from qdialect._mlir import ir
from qdialect.lowering.functions import functions
from qdialect.lowering.indexing_maps import contraction_of
from qdialect.lowering.program import KERNEL
from qdialect.lowering.threads.accesses import bounds
from qdialect.lowering.x86.delayed_epilogue import TRIPS
from qdialect.target.machine import Machine

_NUMBER = re.compile(rf"{KERNEL}(\d+)")
_LOADS = ("vector.load", "vector.transfer_read", "vector.maskedload")
_STORES = ("vector.store", "vector.transfer_write", "vector.maskedstore")
_FREE = ("arith.constant", "arith.index_cast", "arith.index_castui", "arith.extui", "arith.extsi")
_PRODUCT = re.compile(r"vpdp|pmadd")
_TILE_PRODUCT = re.compile(r"tdpb")
_LOOP = "scf.for"
_PAIRS = re.compile(r"pmadd\.?ub")


@dataclass(frozen=True)
class KernelCycles:
    """What the instructions of a kernel take."""

    bound: float
    """At least."""
    predicted: float
    """Loop by loop, with all data in the first level."""


def kernel_cycles(module: ir.Module, machine: Machine) -> dict[int, KernelCycles]:
    """Cycles by the number of a kernel, of the kernels of a module of the phase `x86`."""
    found: dict[int, KernelCycles] = {}
    for function in functions(module):
        number = _NUMBER.match(ir.StringAttr(function.attributes["sym_name"]).value)
        if number:
            bound = cycles(counted(function, machine), machine)
            found[int(number[1])] = KernelCycles(bound, predicted(function, machine))
    return found


def predicted(op: ir.Operation, machine: Machine) -> float:
    """Cycles of a function or a loop, the sum of what its loop bodies take."""
    outside, inside = _outside_of_loops(op, machine)
    return _trips(op) * (cycles(outside, machine) + sum(predicted(loop, machine) for loop in inside))


def memory_cycles(size: int, machine: Machine) -> float:
    """Cycles until `size` bytes that a kernel reads and writes have come."""
    if size <= machine.l1_bytes:
        return 0.0
    return size / (machine.l2_bandwidth / (2 if size <= machine.l2_bytes else 4))


def kernels_of_pairs(module: ir.Module) -> set[int]:
    """Numbers of the kernels of a module of the phase `x86` that sum products of bytes in pairs."""
    return _kernels_with(_PAIRS, module)


def kernels_of_tiles(module: ir.Module) -> set[int]:
    """Numbers of the kernels of a module of the phase `x86` that multiply matrix tiles."""
    return _kernels_with(_TILE_PRODUCT, module)


def _kernels_with(instruction: re.Pattern[str], module: ir.Module) -> set[int]:
    numbers = (
        (function, _NUMBER.match(ir.StringAttr(function.attributes["sym_name"]).value))
        for function in functions(module)
    )
    return {int(number[1]) for function, number in numbers if number and instruction.search(str(function))}


def cycles(counts: Mapping[str, float], machine: Machine) -> float:
    """Cycles of the busiest port."""
    rates = {
        "products": machine.dot_products,
        "loads": machine.loads,
        "stores": 1,
        "instructions": machine.vector_instructions,
        "tiles": 1,
    }
    return max((counts[name] / rates[name] for name in counts), default=0.0)


def counted(op: ir.Operation, machine: Machine) -> dict[str, float]:
    """What `op` and all that is in it asks of each port."""
    total: dict[str, float] = {}
    trips = _trips(op)
    for counts in (_own(op, machine), *(counted(child, machine) for child in _children(op))):
        _add(total, counts, trips)
    return total


def _add(total: dict[str, float], counts: Mapping[str, float], trips: float = 1) -> None:
    """Add `counts`, which are asked for so often."""
    for name, count in counts.items():
        total[name] = total.get(name, 0) + trips * count


def _outside_of_loops(op: ir.Operation, machine: Machine) -> tuple[dict[str, float], list[ir.Operation]]:
    """What `op` and all that is in it, but in no inner loop, asks of each port; and the outermost of these loops."""
    total, loops = dict[str, float](_own(op, machine)), list[ir.Operation]()
    for child in _children(op):
        if child.name == _LOOP and TRIPS not in child.attributes:
            loops.append(child)
            continue
        own, inner = _outside_of_loops(child, machine)
        _add(total, own, _trips(child))
        loops += inner
    return total, loops


def _children(op: ir.Operation) -> Iterator[ir.Operation]:
    return (child.operation for region in op.regions for block in region.blocks for child in block.operations)


def _trips(op: ir.Operation) -> float:
    if TRIPS in op.attributes:
        return ir.FloatAttr(op.attributes[TRIPS]).value
    found = bounds(op) if op.name == _LOOP else None
    # Of a loop whose end is known when it runs, once is certain.
    return found[2] if found else 1


def _own(op: ir.Operation, machine: Machine) -> Counter[str]:
    if op.name == "vector.contract":
        vectors = math.prod(contraction_of(op).extents) * 8 // machine.vector_bits
        return Counter(products=vectors, instructions=vectors)
    if op.name == "llvm.call_intrinsic":
        return _instruction(op, machine)
    if op.name in _LOADS:
        return Counter(loads=_vectors(op.results[0].type, machine))
    if op.name in _STORES:
        return Counter(stores=_vectors(op.operands[0].type, machine))
    if op.name.startswith(("arith.", "math.")) and op.name not in _FREE and op.results:
        return Counter(instructions=max(_vectors(value.type, machine) for value in (*op.operands, *op.results)))
    if op.name == "vector.shuffle" and _bits(op.results[0].type) >= _bits(op.operands[0].type):
        return Counter(instructions=_vectors(op.results[0].type, machine))
    return Counter()


def _instruction(op: ir.Operation, machine: Machine) -> Counter[str]:
    name = ir.StringAttr(op.attributes["intrin"]).value
    if _TILE_PRODUCT.search(name):
        return Counter(tiles=machine.tile_product_cycles)
    vectors = _vectors(op.results[0].type, machine) if op.results else 0
    return Counter(instructions=vectors, products=vectors if _PRODUCT.search(name) else 0)


def _vectors(type_: ir.Type, machine: Machine) -> int:
    """Vectors that hold a value; none for a scalar."""
    return -(-_bits(type_) // machine.vector_bits)


def _bits(type_: ir.Type) -> int:
    if not isinstance(type_, ir.VectorType):
        return 0
    element = type_.element_type
    width = element.width if isinstance(element, ir.IntegerType | ir.FloatType) else 8
    return math.prod(type_.shape) * width
