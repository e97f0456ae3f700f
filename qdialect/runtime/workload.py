"""How much a network computes, and how fast an executable does it."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdialect import target as targets
from qdialect._mlir import ir
from qdialect.dialect.type_constraints import shape_of
from qdialect.runtime.base import Executable
from qdialect.runtime.peak import dot_product_rate, loop_title, with_dot_products
from qdialect.target import Target

Array = NDArray[Any]

_CONTRACTIONS = ("conv2d", "dense", "conv_transpose2d", "matmul")
_WARM_UP_CALLS = 3
_ROUNDS = 5


def multiply_accumulates(module: ir.Module) -> int:
    """Products that the convolutions and matrix products of a `qnn` module sum up, those with padding included."""
    total = 0
    for function in module.body.operations:
        for op in function.operation.regions[0].blocks[0].operations:
            kind = op.operation.name.removeprefix("qnn.").removeprefix("fused_").removeprefix("i16_")
            if kind in _CONTRACTIONS:
                total += _macs(kind, op.operation)
    return total


def _macs(kind: str, op: ir.Operation) -> int:
    data, weight = (shape_of(operand.type) for operand in list(op.operands)[:2])
    outputs = math.prod(shape_of(op.results[0].type))
    match kind:
        case "matmul":
            return outputs * data[-1]
        case "conv_transpose2d":
            # Each pixel of the data meets the whole kernel, whatever padding cuts off.
            return math.prod(data[:-1]) * math.prod(weight)
        case _:
            return outputs * math.prod(weight[1:])


@dataclass(frozen=True)
class Speed:
    """What a measurement found."""

    seconds: float
    """Median of one call."""
    peak: float | None
    """Multiply-accumulates per second of bare dot products, measured in between; None where the CPU has none."""
    loop: str | None = "vpdpbusd"
    """The instructions of that loop."""

    def rate(self, macs: int) -> float:
        """Multiply-accumulates per second of a call that has `macs`."""
        return macs / self.seconds

    def share(self, macs: int) -> float | None:
        """The rate as a share of the bare instruction's."""
        return self.rate(macs) / self.peak if self.peak else None


def measure(
    executable: Executable, inputs: Sequence[Array], seconds: float = 1.0, target: str | Target = "host"
) -> Speed:
    """Call `executable` again and again for so many `seconds`, in turns with the bare loop of `target`.

    `inputs` are contiguous. Raises `InputError` where they do not fit.
    """
    call = _call(executable, inputs)
    for _ in range(_WARM_UP_CALLS):
        call()
    times: list[float] = []
    rates: list[float] = []
    chosen = with_dot_products(targets.resolve(target))
    title = loop_title(chosen)
    for _ in range(_ROUNDS):
        if title:
            rates.append(dot_product_rate(chosen))
        end = time.perf_counter() + seconds / _ROUNDS
        while not times or time.perf_counter() < end:
            start = time.perf_counter()
            call()
            times.append(time.perf_counter() - start)
    return Speed(statistics.median(times), statistics.median(rates) if rates else None, title)


def _call(executable: Executable, inputs: Sequence[Array]) -> Callable[[], object]:
    """A bound call, or one that allocates its results where their shapes are known after it alone."""
    if any(min(port.shape, default=0) < 0 for port in executable.outputs):
        return lambda: executable(*inputs)
    return executable.bind(inputs, [np.empty(port.shape, port.dtype) for port in executable.outputs])
