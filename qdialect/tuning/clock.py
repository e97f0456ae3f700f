"""The times of all kernels of several forms of a network, measured in turns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdialect._mlir import ir
from qdialect.runtime.compiler import compile_module
from qdialect.runtime.executable import CompiledExecutable
from qdialect.runtime.native import Binding
from qdialect.runtime.profile import measured_calls, middle
from qdialect.runtime.random_inputs import random_inputs

Clock = Callable[[Sequence[ir.Module]], Sequence[NDArray[np.float64]]]
"""From clocked networks at phase `linalg` to the seconds of each kernel call, [rounds, calls] for each network."""

_ROUNDS = 9
_SECONDS = 0.02
"""Of a network in a round."""
_WARM_UP_CALLS = 3


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
