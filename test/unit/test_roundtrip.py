"""qdialect-opt --verify-roundtrip: a module that changes when it is printed and parsed is an error."""

from pathlib import Path

import pytest

from qdialect import ParseError, VerificationError, make_context, parse
from qdialect.cli import opt
from qdialect.ir import module_text
from qdialect.ir._mlir import ir
from qdialect.ir.module_text import Printing

TEXT = "func.func @f(%x: tensor<4xi8>) -> tensor<4xi8> {\n  return %x : tensor<4xi8>\n}\n"
OTHER = TEXT.replace("@f", "@g")


def other(_text: str, context: ir.Context) -> ir.Module:
    return parse(OTHER, context)


def other_text(_module: ir.Module) -> str:
    return OTHER


def unfinished(_printing: Printing, _module: ir.Module) -> str:
    return "func.func @f("


def test_a_module_is_what_it_was() -> None:
    module_text.check_round_trip(parse(TEXT))


def test_a_dialect_that_nobody_knows_stays_allowed() -> None:
    context = make_context()
    context.allow_unregistered_dialects = True
    module_text.check_round_trip(parse('"other.op"() : () -> ()', context))


def test_the_first_line_that_differs_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module_text, "parse", other)
    with pytest.raises(
        VerificationError, match=r"round trip through text: line 2 of its print must be .*@f.*but got .*@g"
    ):
        module_text.check_round_trip(parse(TEXT))


def test_bytecode_is_compared_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module_text, "bytecode", other_text)
    with pytest.raises(VerificationError, match="round trip through bytecode: line 2"):
        module_text.check_round_trip(parse(TEXT))


def test_a_print_that_is_no_module(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Printing, "text", unfinished)
    with pytest.raises(ParseError):
        module_text.check_round_trip(parse(TEXT))


def test_the_command_fails(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    source = tmp_path / "x.mlir"
    source.write_text(TEXT)
    assert opt.main([str(source), "--verify-roundtrip"]) == 0
    assert "func.func @f" in capsys.readouterr().out
    monkeypatch.setattr(module_text, "parse", other)
    assert opt.main([str(source), "--verify-roundtrip"]) == 1
    found = capsys.readouterr()
    assert found.out == ""
    assert "module must be the same after a round trip through text" in found.err
