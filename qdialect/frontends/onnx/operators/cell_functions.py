"""The functions of recurrent cells: attributes activations, activation_alpha and activation_beta."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from qdialect.frontends.common import require
from qdialect.frontends.onnx.operators.registry import Call
from qdialect.quant_math import activations, onnx_activations
from qdialect.quant_math.expressions import Expression, Input
from qdialect.quant_math.recurrence import CELL_FUNCTIONS, CellActivation


@dataclass(frozen=True)
class _Function:
    """A function with its default parameters, which it takes from the lists alpha and beta; None: without default."""

    build: Callable[..., Expression]
    defaults: tuple[float | None, ...] = ()


_X = Input()


def _affine(alpha: float, beta: float) -> Expression:
    return _X * alpha + beta


def _scaled_tanh(alpha: float, beta: float) -> Expression:
    return activations.tanh.of(_X * beta) * alpha


def _without_parameters(expression: Expression) -> _Function:
    return _Function(lambda: expression)


_FUNCTIONS: Mapping[str, _Function] = {
    **{one.value: _without_parameters(CELL_FUNCTIONS[one]) for one in CellActivation},
    "affine": _Function(_affine, (1.0, 0.0)),
    "leakyrelu": _Function(activations.leaky_relu, (0.01,)),
    "thresholdedrelu": _Function(onnx_activations.thresholded, (1.0,)),
    "scaledtanh": _Function(_scaled_tanh, (None, None)),
    "hardsigmoid": _Function(onnx_activations.hard_sigmoid, (0.2, 0.5)),
    "elu": _Function(onnx_activations.elu, (1.0,)),
    "softsign": _without_parameters(onnx_activations.softsign),
    "softplus": _without_parameters(onnx_activations.softplus),
}


@dataclass(frozen=True)
class CellFunction:
    """A function of a cell: one that the dialect's cells have, and as an expression."""

    activation: CellActivation | None
    expression: Expression


def cell_functions(call: Call, defaults: Sequence[CellActivation], directions: int) -> list[CellFunction]:
    """The functions of all directions, one after the other; raises `UnsupportedError`.

    The lists of parameters are used up by the functions that take them, in order; one that is given has all of them.
    """
    names: Sequence[str] = call.attribute("activations", [""])
    if not any(names):
        return [CellFunction(one, CELL_FUNCTIONS[one]) for one in defaults] * directions
    count = len(defaults) * directions
    require(len(names) == count, f"activations must have {count} entries, but got {len(names)}")
    parameters = [_Parameters(call, name) for name in ("activation_alpha", "activation_beta")]
    return [_function(name, parameters) for name in names]


class _Parameters:
    """A list of parameters that functions use up."""

    def __init__(self, call: Call, name: str) -> None:
        self._name = name
        self._is_given = name in call.node.attributes
        self._left: Iterator[float] = iter(call.attribute(name, [0.0]) if self._is_given else ())

    def next(self, default: float | None) -> float | None:
        """The next one; `default` without a list."""
        found = next(self._left, None)
        require(found is not None or not self._is_given, f"{self._name} must have an entry for each function with one")
        return default if found is None else found


def _function(name: str, parameters: Sequence[_Parameters]) -> CellFunction:
    found = _FUNCTIONS.get(name.lower())
    require(found is not None, f"activations must be functions of ONNX's recurrent operators, but got {name}")
    assert found is not None
    values = [given.next(default) for given, default in zip(parameters, found.defaults, strict=False)]
    require(None not in values, f"{name} must have an activation_alpha and an activation_beta")
    activation = CellActivation(name.lower()) if name.lower() in set(CellActivation) else None
    return CellFunction(activation, found.build(*values))
