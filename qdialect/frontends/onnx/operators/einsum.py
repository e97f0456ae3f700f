"""Einsum: sums over labels, transposes, and a product of matrices for each further tensor, from the left."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from qdialect.frontends.common import Shape, require
from qdialect.frontends.onnx.operators.parts import part_of
from qdialect.frontends.onnx.operators.registry import Call, imports
from qdialect.frontends.planning.tensors import Constant, Tensor

_OWN_LABELS = "0123456789"
"""For the dimensions that an ellipsis stands for."""
_ELLIPSIS = "..."


@dataclass(frozen=True)
class _Operand:
    """A tensor with a label for each dimension."""

    tensor: Tensor
    labels: str

    @property
    def extents(self) -> dict[str, int]:
        """By label."""
        return dict(zip(self.labels, self.tensor.shape, strict=True))


@imports("Einsum")
def _einsum(call: Call) -> Tensor:
    call.count(1, len(call.inputs))
    operands, result = _labelled(call)
    operands = [_summed(call, operand, _kept(operands, index, result)) for index, operand in enumerate(operands)]
    product, *others = operands
    for index, operand in enumerate(others):
        # What a later operand has must be left for it.
        needed = result + "".join(other.labels for other in others[index + 1 :])
        product = _product(call, product, operand, needed)
    return _transposed(call, product, result).tensor


def _labelled(call: Call) -> tuple[list[_Operand], str]:
    """The operands and the labels of the result."""
    equation: str = call.attribute("equation", "").replace(" ", "")
    left, arrow, right = equation.partition("->")
    terms = left.split(",")
    count = len(call.inputs)
    require(len(terms) == count, f"equation must have {count} terms, but got '{equation}'")
    tensors = [call.tensor(index) for index in range(count)]
    hidden = [len(tensor.shape) - len(term.replace(_ELLIPSIS, "")) for tensor, term in zip(tensors, terms, strict=True)]
    maximum = max((own for own, term in zip(hidden, terms, strict=True) if _ELLIPSIS in term), default=0)
    operands: list[_Operand] = []
    for tensor, term, own in zip(tensors, terms, hidden, strict=True):
        fits = (0 <= own <= len(_OWN_LABELS)) if _ELLIPSIS in term else own == 0
        require(fits, f"term '{term}' must have a label for each dimension of {list(tensor.shape)}")
        labels = term.replace(_ELLIPSIS, _OWN_LABELS[maximum - own : maximum])
        require(len(set(labels)) == len(labels), f"labels of a term must differ, but got '{term}'")
        operands.append(_Operand(tensor, labels))
    _check_extents(operands)
    found = "".join(operand.labels for operand in operands)
    single = "".join(sorted(label for label in set(found) if found.count(label) == 1 and label not in _OWN_LABELS))
    result = right.replace(_ELLIPSIS, _OWN_LABELS[:maximum]) if arrow else _OWN_LABELS[:maximum] + single
    fits = len(set(result)) == len(result) and set(result) <= set(found)
    require(fits, f"equation must name labels of its operands once in the result, but got '{equation}'")
    return operands, result


def _check_extents(operands: Sequence[_Operand]) -> None:
    known: dict[str, int] = {}
    for operand in operands:
        for label, extent in operand.extents.items():
            wanted = known.setdefault(label, extent)
            require(wanted == extent, f"label '{label}' must stand for one extent, but got {wanted} and {extent}")


def _kept(operands: Sequence[_Operand], index: int, result: str) -> str:
    """The labels of an operand that anything else has."""
    others = "".join(operand.labels for i, operand in enumerate(operands) if i != index)
    return "".join(label for label in operands[index].labels if label in result + others)


def _summed(call: Call, operand: _Operand, kept: str) -> _Operand:
    axes = [i for i, label in enumerate(operand.labels) if label not in kept]
    if not axes:
        return operand
    found = part_of(call, "ReduceSum", [operand.tensor, Constant(np.array(axes))], keepdims=0)
    return _Operand(found, kept)


def _product(call: Call, lhs: _Operand, rhs: _Operand, result: str) -> _Operand:
    """Matrices of the labels that both have and the result too, with columns or rows of those that it lacks."""
    batch = "".join(label for label in lhs.labels if label in rhs.labels and label in result)
    inner = "".join(label for label in lhs.labels if label in rhs.labels and label not in result)
    rows = "".join(label for label in lhs.labels if label not in rhs.labels)
    columns = "".join(label for label in rhs.labels if label not in lhs.labels)
    extents = lhs.extents | rhs.extents
    left = _matrix(call, _transposed(call, lhs, batch + rows + inner), (batch, rows, inner))
    right = _matrix(call, _transposed(call, rhs, batch + inner + columns), (batch, inner, columns))
    labels = batch + rows + columns
    found = _reshaped(call, part_of(call, "MatMul", [left, right]), tuple(extents[label] for label in labels))
    return _Operand(found, labels)


def _matrix(call: Call, operand: _Operand, parts: Sequence[str]) -> Tensor:
    """An operand with one dimension for each label of the first part and one for each of the others."""
    batch, *matrix = parts
    extents = operand.extents
    sizes = (math.prod(extents[label] for label in part) for part in matrix)
    return _reshaped(call, operand.tensor, (*(extents[label] for label in batch), *sizes))


def _transposed(call: Call, operand: _Operand, labels: str) -> _Operand:
    if operand.labels == labels:
        return operand
    order = [operand.labels.index(label) for label in labels]
    return _Operand(part_of(call, "Transpose", [operand.tensor], perm=order), labels)


def _reshaped(call: Call, tensor: Tensor, shape: Shape) -> Tensor:
    if tensor.shape == shape:
        return tensor
    return part_of(call, "Reshape", [tensor, Constant(np.array(shape, np.int64))])
