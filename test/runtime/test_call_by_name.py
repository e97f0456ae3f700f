"""Inputs and outputs by name, calls that others wait for, and what an executable shows of itself."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import qdialect
from qdialect import Executable
from qdialect.support.diagnostics import InputError

TEXT = """
func.func @main(%a: tensor<2x4xi8> {qnn.name = "image", qnn.scale = 0.5 : f64, qnn.zero_point = -3 : i64},
    %b: tensor<2x4xi8> {qnn.name = "out"}) -> (tensor<2x4xi8> {qnn.name = "low"}, tensor<2x4xi8> {qnn.name = "b:0"}) {
  %x = "qnn.clip"(%a) {min = -5 : i64, max = 9 : i64} : (tensor<2x4xi8>) -> tensor<2x4xi8>
  %y = "qnn.clip"(%b) {min = 0 : i64, max = 100 : i64} : (tensor<2x4xi8>) -> tensor<2x4xi8>
  return %x, %y : tensor<2x4xi8>, tensor<2x4xi8>
}
"""
A, B = np.full((2, 4), -100, np.int8), np.full((2, 4), 120, np.int8)


@pytest.fixture(scope="module", params=["compiled", "any batch", "loaded"])
def executable(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Executable:
    made = qdialect.compile(qdialect.parse(TEXT), batch="dynamic" if request.param == "any batch" else 1)
    if request.param != "loaded":
        return made
    path = tmp_path_factory.mktemp("loaded") / "network.so"
    made.save(path)
    return qdialect.load(path)


TORCH: Any = torch
FEEDS: list[Callable[[Executable], Any]] = [
    lambda one: one(A, B),
    lambda one: one({"out": B, "image": A}),
    lambda one: one({"out": B}, image=A),
    lambda one: one.submit({"out": B, "image": TORCH.from_numpy(A)}).result(),
    lambda one: one.submit(A, B).result(),
    lambda one: asyncio.run(_awaited(one)),
    lambda one: tuple(one(A, B, returns="dict").values()),
    lambda one: tuple(
        one(A, B, out={"b:0": np.empty_like(B), "low": np.empty_like(A)})[name] for name in ("low", "b:0")
    ),
]


async def _awaited(executable: Executable) -> Any:
    return await asyncio.wrap_future(executable.submit({"image": A, "out": B}))


def test_every_way_to_call_gives_the_same(executable: Executable) -> None:
    for number, feed in enumerate(FEEDS):
        low, other = feed(executable)
        assert (low == -5).all(), number
        assert (other == 100).all(), number


REFUSED: dict[str, Callable[[Executable], Any]] = {
    "one input 'imag', but has 0, did you mean 'image'?": lambda one: one({"imag": A, "out": B}),
    "one input 'z', but has 0; its inputs are image, out": lambda one: one({"z": A}),
    "every input, but lacks out": lambda one: one(image=A),
    "input 'image' must be given once": lambda one: one(A, image=A),
    "every output, but lacks b:0": lambda one: one(A, B, out={"low": A}),
    "one output 'lo', but has 0, did you mean 'low'?": lambda one: one.outputs["lo"],
    "called with 2 inputs": lambda one: one(A),
    "input 'image' must be": lambda one: one.submit({"image": A[:, :2], "out": B}).result(),
    "returns must be numpy, torch or dict": lambda one: one(A, B, returns="list"),
}


@pytest.mark.parametrize("message", REFUSED)
def test_names_that_do_not_fit(executable: Executable, message: str) -> None:
    with pytest.raises(InputError) as error:
        REFUSED[message](executable)
    assert message in str(error.value)


def test_ports_are_found_by_name(executable: Executable) -> None:
    assert executable.inputs["image"] is executable.inputs[0]
    assert executable.outputs["b:0"] is executable.outputs[-1]
    assert executable.inputs[:1] == (executable.inputs["image"],)


def test_names_that_several_ports_have() -> None:
    made = qdialect.compile(qdialect.parse(TEXT.replace('"b:0"', '"low"')))
    assert len(made({"image": A, "out": B})) == 2
    with pytest.raises(InputError, match="one output 'low', but has 2"):
        made(A, B, returns="dict")


def html(executable: Executable) -> str:
    """What a notebook shows."""
    return getattr(executable, "_repr_html_")()  # noqa: B009


def test_it_shows_what_it_is(executable: Executable) -> None:
    batch = "?" if executable.inputs[0].shape[0] < 0 else "2"
    for shown in (repr(executable), html(executable)):
        assert executable.target in shown
        assert f"int8[{batch}, 4], scale 0.5, zero point -3" in shown
        assert "1 thread" in shown
        assert f"{executable.working_memory} bytes of working memory" in shown
        assert "qdialect (" in shown


def test_names_of_a_model_are_shown_as_text() -> None:
    made = qdialect.compile(qdialect.parse(TEXT.replace('"b:0"', '"<b>\\1B[0m"')))
    assert "\x1b" not in repr(made)
    assert "<b>" not in html(made)


def test_a_module_shows_its_public_names() -> None:
    assert dir(qdialect) == sorted(qdialect.__all__)
