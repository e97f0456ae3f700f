"""PyTorch's own samples of its operators (`op_db`), exported as users export models, beside eager PyTorch."""

from __future__ import annotations

import copy
import io
import pickle
import warnings
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import torch
from torch.export import Dim
from torch.utils import _pytree as pytree

from qdialect.support.interface import BFLOAT16
from tools.evidence.case import Array, Case, InvalidCaseError, Key, Source

_DTYPES = (torch.float32, torch.int64, torch.bool, torch.float16)
_SAMPLES = 3
_LARGEST = 1 << 16


class TorchCases(Source):
    """The first samples of each operator and type; the form is ``exported``."""

    name = "torch"

    def rows(self) -> Iterator[Key]:
        for name, one in _operators().items():
            for dtype in _DTYPES:
                if dtype in one.dtypes:
                    for number in range(_SAMPLES if dtype != torch.float16 else 1):
                        yield Key(
                            name.partition("#")[0], str(dtype).removeprefix("torch."), "exported", f"{name}/{number}"
                        )

    def case(self, key: Key) -> Case:
        torch.default_generator.manual_seed(0)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return case_of_module(*call_of(key))
        except Exception as error:
            raise InvalidCaseError(f"{type(error).__name__}: {error}") from error

    def joint_case(self, keys: Sequence[Key]) -> tuple[list[Key], Case]:
        """One program of the rows' calls, one after the other, and the rows: all but those of tensors without elements.

        Raises `InvalidCaseError` as `case` does.
        """
        torch.default_generator.manual_seed(0)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                calls = {key: call_of(key) for key in keys}
                calls = {key: one for key, one in calls.items() if _has_elements(*one)}
                joint = _Calls([call for call, _ in calls.values()], [len(tensors) for _, tensors in calls.values()])
                tensors = tuple(one for _, tensors in calls.values() for one in tensors)
                return list(calls), case_of_module(joint.eval(), tensors)
        except Exception as error:
            raise InvalidCaseError(f"{type(error).__name__}: {error}") from error


def _has_elements(call: torch.nn.Module, tensors: tuple[torch.Tensor, ...]) -> bool:
    with torch.no_grad():
        results = call(*(one.clone() for one in tensors))
    return all(one.numel() for one in (*tensors, *results))


class _Calls(torch.nn.Module):
    """Calls that take the tensors one after the other, so many each."""

    def __init__(self, calls: Sequence[torch.nn.Module], counts: Sequence[int]) -> None:
        super().__init__()
        self.calls, self.counts = torch.nn.ModuleList(calls), counts

    def forward(self, *tensors: torch.Tensor) -> Any:
        parts: list[Any] = []
        given = iter(tensors)
        for call, count in zip(self.calls, self.counts, strict=True):
            parts += call(*(next(given) for _ in range(count)))
        return tuple(parts)


class _Call(torch.nn.Module):
    """A call of an operator whose tensors are inputs of the module and whose other arguments are fixed."""

    def __init__(self, operator: Any, leaves: list[Any], structure: Any) -> None:
        super().__init__()
        self.operator, self.leaves, self.structure = operator, leaves, structure

    def forward(self, *tensors: torch.Tensor) -> Any:
        given = iter(tensors)
        leaves = [next(given) if isinstance(one, torch.Tensor) else one for one in self.leaves]
        arguments, options = pytree.tree_unflatten(leaves, self.structure)
        # Named tuples cannot be saved.
        return tuple(pytree.tree_leaves(self.operator(*arguments, **options)))


def call_of(key: Key) -> tuple[torch.nn.Module, tuple[torch.Tensor, ...]]:
    """The call of the sample of a row, and its tensors."""
    name, _, number = key.origin.rpartition("/")
    operator = _operators()[name]
    samples = operator.sample_inputs("cpu", getattr(torch, key.types), requires_grad=False)
    sample = next((one for index, one in enumerate(samples) if index == int(number)), None)
    if sample is None:
        raise InvalidCaseError("there are fewer samples")
    leaves, structure = pytree.tree_flatten(((sample.input, *sample.args), dict(sample.kwargs)))
    tensors = tuple(one for one in leaves if isinstance(one, torch.Tensor))
    if sum(one.numel() for one in tensors) > _LARGEST:
        raise InvalidCaseError("sample is large")
    return _Call(operator.get_op(), leaves, structure).eval(), tensors


def case_of_module(
    module: torch.nn.Module,
    tensors: tuple[torch.Tensor, ...],
    *,
    examples: tuple[torch.Tensor, ...] | None = None,
    later: Sequence[tuple[torch.Tensor, ...]] = (),
) -> Case:
    """What eager PyTorch gives in a call and in those that follow, and the exported program.

    With `examples` it is exported for those, with all extents open that may be.  Raises `InvalidCaseError` where two
    runs differ, and where a program for the `examples` does not take the tensors.
    """
    # Behind one name, as drawn programs take them.
    opened = examples and (tuple(dict.fromkeys(range(one.dim()), Dim.AUTO) for one in examples),)
    with torch.no_grad():
        first, again = (_results(copy.deepcopy(module), (tensors, *later)) for _ in range(2))
        given = tuple(one.clone() for one in examples or tensors)
        program = torch.export.export(module, given, strict=False, dynamic_shapes=opened)
        if examples is not None:
            _results(program.module(), (tensors,))
    _check_known(program)
    if pickle.dumps(first) != pickle.dumps(again):
        raise InvalidCaseError("results differ from run to run")
    (inputs, wanted), *others = first
    return Case(".pt2", _saved(program), inputs, wanted, later=tuple(others), dims=_dims(program, given))


def _dims(program: torch.export.ExportedProgram, given: Sequence[torch.Tensor]) -> Mapping[str, int]:
    """The sizes of open extents, by their names."""
    names = program.graph_signature.user_inputs
    noted = {node.name: node.meta["val"].shape for node in program.graph.nodes if node.name in names}
    pairs = [pair for name, one in zip(names, given, strict=True) for pair in zip(noted[name], one.shape, strict=True)]
    found = {str(extent): size for extent, size in pairs}
    return {name: size for name, size in found.items() if name.isidentifier()}


def _results(
    module: torch.nn.Module, calls: Sequence[tuple[torch.Tensor, ...]]
) -> list[tuple[tuple[Array, ...], tuple[Array, ...]]]:
    """What each call is given, and what it gives."""
    found = ((call, pytree.tree_leaves(module(*(one.clone() for one in call)))) for call in calls)
    # A result may be a buffer that the next call writes.
    return [(tuple(map(_array, call)), tuple(_array(one).copy() for one in results)) for call, results in found]


def _check_known(program: torch.export.ExportedProgram) -> None:
    """Raise `InvalidCaseError` for results that are drawn, though a test fixes the seed, or are left as memory was."""
    for node in program.graph.nodes:
        tags = getattr(node.target, "tags", ())
        if torch.Tag.nondeterministic_seeded in tags or ".empty" in str(node.target) or "new_empty" in str(node.target):
            raise InvalidCaseError(f"results of {node.target} differ from run to run")


def sample_program() -> bytes:
    """A small exported program, as a file."""
    module = torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.ReLU())
    return _saved(torch.export.export(module.eval(), (torch.zeros(2, 8),), strict=False))


def _saved(program: torch.export.ExportedProgram) -> bytes:
    file = io.BytesIO()
    torch.export.save(program, file)
    return file.getvalue()


def _array(value: Any) -> Array:
    if not isinstance(value, torch.Tensor):
        raise InvalidCaseError("a result is no tensor")
    plain = value.detach().resolve_conj().resolve_neg().contiguous()
    # PyTorch makes no arrays of these.
    return plain.view(torch.int16).numpy().view(BFLOAT16) if plain.dtype == torch.bfloat16 else plain.numpy()


@cache
def _operators() -> Mapping[str, Any]:
    """By name, with the variant where there are several."""
    from torch.testing._internal.common_methods_invocations import op_db

    return {one.name + (f"#{one.variant_test_name}" if one.variant_test_name else ""): one for one in op_db}
