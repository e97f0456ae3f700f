"""The times of all kernels of several forms of a network, measured in turns."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdialect._mlir import ir
from qdialect.runtime.compiler import compile_module
from qdialect.runtime.executable import CompiledExecutable
from qdialect.runtime.native import Binding
from qdialect.runtime.random_inputs import random_inputs

Clock = Callable[[Sequence[ir.Module]], Sequence[NDArray[np.float64]]]
"""From clocked networks at phase `linalg` to the seconds of each kernel call, [rounds, calls] for each network."""

_ROUNDS = 9
_SECONDS = 0.02
"""Of a network in a round."""
_WARM_UP_CALLS = 3
_MAX_CALLS = 2000
"""Of a measurement: as many give a median."""


def measure(modules: Sequence[ir.Module]) -> list[NDArray[np.float64]]:
    """Call the networks in turns on random inputs, so that what disturbs the machine meets all of them.

    Raises what `compile_module` raises.
    """
    networks = [compile_module(module, target="host", clocked=True) for module in modules]
    calls = [_bound(network) for network in networks]
    for call in calls:
        for _ in range(_WARM_UP_CALLS):
            call()
    rounds: list[list[NDArray[np.float64]]] = [[] for _ in networks]
    for _ in range(_ROUNDS):
        for network, call, found in zip(networks, calls, rounds, strict=True):
            ticks, length = measured_calls(call, network.ticks, _SECONDS)
            found.append(middle(np.diff(np.array(ticks), axis=1)) * length)
    return [np.array(found) for found in rounds]


def _bound(network: CompiledExecutable) -> Binding:
    outputs: list[NDArray[Any]] = [np.empty(port.shape, port.dtype) for port in network.outputs]
    return network.bind(random_inputs(network.inputs, 0), outputs)


def middle(cycles: NDArray[np.int64]) -> NDArray[np.float64]:
    """The mean of the middle half of each column: a counter may advance in strides that a median would keep."""
    count = len(cycles)
    return np.sort(cycles, axis=0)[count // 4 : count - count // 4].mean(axis=0)


def measured_calls(call: Binding, ticks: NDArray[np.int64], seconds: float) -> tuple[list[NDArray[np.int64]], float]:
    """The clock's readings of each call, and the seconds that one of its cycles lasts."""
    readings: list[NDArray[np.int64]] = []
    ends: list[float] = []
    limit = time.perf_counter() + seconds
    while len(ends) < 2 or (ends[-1] < limit and len(ends) < _MAX_CALLS):
        call()
        ends.append(time.perf_counter())
        readings.append(ticks.copy())
    # Both clocks at the end of the first call and of the last.
    return readings, (ends[-1] - ends[0]) / float(readings[-1][-1] - readings[0][-1])
