"""Reductions of integers that start from what changes nothing have no start; others keep theirs."""

from __future__ import annotations

import re

import pytest

from qdialect.ir.context import make_context, parse
from qdialect.lowering.ir.upstream import load_kernel_dialects
from qdialect.lowering.x86_to_llvm.to_llvm import drop_neutral_starts

REDUCTION = """func.func @main(%x: vector<8xi16>, %y: i16) -> i16 {{
  %start = arith.constant {start} : i16
  %0 = vector.reduction <{kind}>, %x, {used} : vector<8xi16> into i16
  return %0 : i16
}}"""
NEUTRAL = [("minui", -1), ("and", -1), ("maxui", 0), ("add", 0), ("or", 0), ("xor", 0)]


def starts(kind: str, start: int, used: str = "%start") -> bool:
    module = parse(REDUCTION.format(kind=kind, start=start, used=used), make_context())
    load_kernel_dialects(module)
    drop_neutral_starts(module)
    return re.search(r"vector\.reduction <\w+>, %\w+, %", str(module)) is not None


@pytest.mark.parametrize(("kind", "neutral"), NEUTRAL)
def test_a_start_that_changes_nothing_is_dropped(kind: str, neutral: int) -> None:
    assert not starts(kind, neutral)


@pytest.mark.parametrize(("kind", "start"), [("minui", 0), ("maxui", -1), ("add", 1), ("minsi", -1), ("mul", 0)])
def test_other_starts_stay(kind: str, start: int) -> None:
    assert starts(kind, start)


def test_a_start_that_is_no_constant_stays() -> None:
    assert starts("minui", -1, "%y")


def test_floats_keep_their_start() -> None:
    text = REDUCTION.format(kind="add", start="0.0", used="%start").replace("i16", "f32")
    module = parse(text, make_context())
    load_kernel_dialects(module)
    drop_neutral_starts(module)
    assert re.search(r"vector\.reduction <add>, %\w+, %", str(module))
