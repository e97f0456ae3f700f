"""The core operators of PyTorch: each gives what PyTorch does, or is refused by its name and with a reason."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.utils._pytree as pytree
from core_aten import CoreCall, core_calls, core_operators, refused_calls
from tolerances import assert_floats_within
from torch import Tensor
from torch_functions import Function

from qdialect.frontends.torch import import_torch
from qdialect.reference.interpreter import run
from qdialect.support.diagnostics import ImportModelError

_DOCS = Path(__file__).parents[2] / "docs" / "formats.md"


def _exported(calls: Sequence[CoreCall]) -> tuple[Any, tuple[Tensor, ...]]:
    """One program of all calls, with a list of results for each, and its inputs."""
    given = tuple({id(one): one for call in calls for one in call.tensors}.values())
    index = {id(one): i for i, one in enumerate(given)}

    def called(*tensors: Tensor) -> list[Any]:
        return [call.result(*(tensors[index[id(one)]] for one in call.tensors)) for call in calls]

    return torch.export.export(Function(called), given), given


def _assert_same(found: np.ndarray[Any, Any], wanted: np.ndarray[Any, Any]) -> None:
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    if found.dtype == np.float32:
        assert_floats_within(found, wanted, "layer")
    else:
        np.testing.assert_array_equal(found, wanted)


def _difference(check: Callable[[], None]) -> str:
    try:
        check()
    except AssertionError as error:
        return str(error)
    return ""


def test_every_call_gives_what_pytorch_gives() -> None:
    calls = list(core_calls())
    program, given = _exported(calls)
    results = iter(run(import_torch(program), [one.numpy() for one in given]))
    different: dict[str, str] = {}
    for call in calls:
        for wanted in pytree.tree_leaves(call.result(*call.tensors)):
            different[str(call)] = _difference(partial(_assert_same, next(results), wanted.numpy()))
    assert {call: found for call, found in different.items() if found} == {}


def test_every_other_call_is_refused_by_its_name_and_with_a_reason() -> None:
    calls = list(refused_calls())
    program, _ = _exported(calls)
    with pytest.raises(ImportModelError) as caught:
        import_torch(program)
    for call in calls:
        assert f"aten.{call.operator.removesuffix('.default')}: " in str(caught.value)


def test_extents_that_depend_on_data_are_refused() -> None:
    with pytest.raises(ImportModelError, match=r"'nonzero' aten\.nonzero: extents of a result must be known before"):
        import_torch(torch.export.export(Function(torch.nonzero), (torch.ones(3),)))


def test_the_page_names_every_operator_that_is_not_compiled() -> None:
    section = _DOCS.read_text().partition("### Core operators that PyTorch runs\n")[2].partition("\n## ")[0]
    rows = [row.split("|")[1] for row in section.splitlines() if row.startswith("| ")][1:]
    told = {name.strip().strip("`") for row in rows for name in row.split(",")}
    compiled = {call.operator for call in core_calls()}
    assert told == {name.removesuffix(".default") for name in core_operators() - compiled}
