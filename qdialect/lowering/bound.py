"""The cycles that a kernel needs at least on the busiest port of a core, from its code at the phase `x86`.

Of every op on vectors, times the trips of the loops around it, there are counted in whole vectors

  products      dot products, at the core's dot products a cycle
  loads         reads of memory, at its loads a cycle
  stores        writes, one a cycle
  instructions  dot products and all that computes or moves lanes, at its instructions a cycle

and the longest of the four is the bound: no order of instructions is faster, if LLVM needs as many.  Constants, casts
and extensions, which loads do on the way, count nothing; neither do addresses and the loops themselves.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping

from qdialect._mlir import ir
from qdialect.lowering.functions import functions
from qdialect.lowering.indexing_maps import contraction_of
from qdialect.lowering.program import KERNEL
from qdialect.lowering.threads.accesses import bounds
from qdialect.machine import Machine

_NUMBER = re.compile(rf"{KERNEL}(\d+)")
_LOADS = ("vector.load", "vector.transfer_read", "vector.maskedload")
_STORES = ("vector.store", "vector.transfer_write", "vector.maskedstore")
_FREE = ("arith.constant", "arith.index_cast", "arith.index_castui", "arith.extui", "arith.extsi")
_PRODUCT = re.compile(r"vpdp|pmadd")
_TILE_PRODUCT = "tdpb"
_PAIRS = re.compile(r"pmadd\.?ub")


def kernel_bounds(module: ir.Module, machine: Machine) -> dict[int, float]:
    """Cycles by the number of a kernel, of the kernels of a module of the phase `x86`."""
    found: dict[int, float] = {}
    for function in functions(module):
        number = _NUMBER.match(ir.StringAttr(function.attributes["sym_name"]).value)
        if number:
            found[int(number[1])] = cycles(counted(function, machine), machine)
    return found


def kernels_of_pairs(module: ir.Module) -> set[int]:
    """Numbers of the kernels of a module of the phase `x86` that sum products of bytes in pairs."""
    numbers = (
        (function, _NUMBER.match(ir.StringAttr(function.attributes["sym_name"]).value))
        for function in functions(module)
    )
    return {int(number[1]) for function, number in numbers if number and _PAIRS.search(str(function))}


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


def counted(op: ir.Operation, machine: Machine) -> Counter[str]:
    """What `op` and all that is in it asks of each port."""
    trips = 1
    if op.name == "scf.for":
        found = bounds(op)
        # Of a loop whose end is known when it runs, once is certain.
        trips = found[2] if found else 1
    total = _own(op, machine)
    for region in op.regions:
        for block in region.blocks:
            for child in block.operations:
                total += counted(child.operation, machine)
    return Counter({name: trips * count for name, count in total.items()})


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
    if _TILE_PRODUCT in name:
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
