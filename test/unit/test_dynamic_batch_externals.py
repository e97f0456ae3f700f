"""A batch of any size in a network that hands functions to a target: these compute one entry after the other."""

from __future__ import annotations

import threading
from typing import Any, NoReturn

import numpy as np
import pytest
from external_networks import Array, branched, handed_off, interpreted

import qdialect
from qdialect._mlir import ir
from qdialect.diagnostics import CompileError
from qdialect.externals.function import ExternalFunction


@pytest.fixture(scope="module")
def called() -> ir.Module:
    return handed_off(branched())


def entries(count: int) -> Array:
    return np.random.default_rng(count).integers(-128, 128, (count, 7, 6, 3), dtype=np.int8)


def test_every_entry_is_that_of_the_network(called: ir.Module) -> None:
    compute, shapes = interpreted(called), set[tuple[int, ...]]()

    def noting(function: ExternalFunction, *arrays: Array) -> Array:
        shapes.update(array.shape for array in arrays)
        return compute(function, *arrays)

    alone = qdialect.compile(called, externals={"npu": compute})
    executable = qdialect.compile(called, externals={"npu": noting}, batch="dynamic")
    assert [port.shape[0] for port in (*executable.inputs, *executable.outputs)] == [-1, -1, -1]
    for count in (0, 1, 3):
        given = entries(count)
        wanted = [alone(given[i : i + 1]) for i in range(count)]
        for index, found in enumerate(executable(given)):
            assert found.shape[0] == count
            np.testing.assert_array_equal(found, np.concatenate([one[index] for one in wanted] or [found]))
    assert {shape[0] for shape in shapes} == {1}


def test_the_first_failure_ends_the_call(called: ir.Module) -> None:
    compute, calls = interpreted(called), list[str]()

    def sometimes(function: ExternalFunction, *arrays: Array) -> Array:
        calls.append(function.name)
        if len(calls) == 6:
            raise ValueError("out of order")
        return compute(function, *arrays)

    executable = qdialect.compile(called, externals={"npu": sometimes}, batch="dynamic", workspaces=1)
    with pytest.raises(qdialect.ExternalCallError, match="ValueError: out of order"):
        executable(entries(4))
    # What has failed is of the first two entries, and the workspace is free again.
    assert len(calls) <= 8
    assert executable(entries(2))[0].shape[0] == 2


def test_threads_wait_for_a_workspace_while_functions_of_python_run(called: ir.Module) -> None:
    executable = qdialect.compile(called, externals={"npu": interpreted(called)}, batch="dynamic", workspaces=1)
    given = [entries(count) for count in range(1, 5)]
    wanted, found = [executable(one) for one in given], dict[int, Any]()

    def call(index: int) -> None:
        found[index] = executable(given[index])

    threads = [threading.Thread(target=call, args=(index,)) for index in range(len(given))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    for index, results in enumerate(wanted):
        for one, other in zip(found[index], results, strict=True):
            np.testing.assert_array_equal(one, other)


def refusing(_: ExternalFunction, *__: Array) -> NoReturn:
    raise AssertionError


def test_what_has_no_external_is_refused_with_every_batch(called: ir.Module) -> None:
    for batch in (1, "dynamic"):
        with pytest.raises(CompileError, match="goes to target 'npu', for which externals must have a"):
            qdialect.compile(called, batch=batch)


def test_a_network_of_several_entries_is_refused() -> None:
    text = str(branched()).replace("tensor<1x", "tensor<2x").replace("= [1, ", "= [2, ")
    module = handed_off(qdialect.parse(text))
    wanted = "batch must be 1 in a module that hands functions to a target, to be dynamic, but got 2: they compute one"
    with pytest.raises(CompileError, match=wanted):
        qdialect.compile(module, externals={"npu": refusing}, batch="dynamic")


def test_such_a_network_is_not_saved(called: ir.Module, tmp_path: Any) -> None:
    executable = qdialect.compile(called, externals={"npu": interpreted(called)}, batch="dynamic")
    with pytest.raises(CompileError, match="network must not call Python functions to be saved, but externals has one"):
        executable.save(tmp_path / "network.so")
