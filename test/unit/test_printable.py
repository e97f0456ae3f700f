"""Names of a stranger's file on a terminal: whatever they say, it is shown and not obeyed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx_graphs import ModelBuilder

from qdialect.cli import import_model, run, terminal
from qdialect.cli import terminal as table
from qdialect.frontends.onnx import import_onnx
from qdialect.support.diagnostics import Diagnostic, ImportModelError, QDialectError, Severity, printable

# A title for the terminal, a cleared screen, a line of its own, text from right to left, and an invisible mark.
EVIL = "a\x1b]0;owned\x07\x1b[2J\nerror: b\r\u202etxt\u200b\x9b1m"
SHOWN = r"a\x1b]0;owned\x07\x1b[2J\nerror: b\r\u202etxt\u200b\x9b1m"


def unsupported(name: str) -> bytes:
    b = ModelBuilder()
    b.input("x", (1, 4), np.uint8)
    b.node("Hardmax", "x", output=name)
    return b.finish(name)


def supported(name: str) -> bytes:
    b = ModelBuilder()
    data = b.dequantize(b.input("x", (1, 4), np.uint8), (0.5, 3))
    b.node("QuantizeLinear", b.node("Relu", data, output=f"{name}r"), *b.parameters((0.5, 3), np.uint8), output=name)
    return b.finish(name)


def is_harmless(text: str) -> bool:
    return all(line.isprintable() for line in text.split("\n")) and "\nerror: b" not in text


def test_what_is_seen_stays_and_what_is_not_is_escaped() -> None:
    assert printable("Größe 'x' → 3") == "Größe 'x' → 3"
    assert printable(EVIL) == SHOWN
    assert printable("\udc80") == r"\udc80"


def test_messages_of_errors_and_diagnostics() -> None:
    error = QDialectError(f"'{EVIL}' is wrong")
    assert str(error) == f"'{SHOWN}' is wrong"
    assert error.render() == f"error: '{SHOWN}' is wrong"
    assert error.diagnostics[0].message == f"'{EVIL}' is wrong"
    note = Diagnostic(Severity.NOTE, EVIL)
    found = str(Diagnostic(Severity.ERROR, "what", EVIL, 3, 4, (note,)))
    assert found == f"{SHOWN}:3:4: error: what\nnote: {SHOWN}"


def test_an_import_that_fails() -> None:
    with pytest.raises(ImportModelError) as caught:
        import_onnx(unsupported(EVIL))
    assert SHOWN in caught.value.render()
    assert is_harmless(caught.value.render())


def test_tables_and_progress(capsys: pytest.CaptureFixture[str]) -> None:
    assert table.render_table(("name",), [(EVIL,)]).split("\n") == ["name", SHOWN]
    terminal.say(f"first\nmeasuring {SHOWN}\x1b[2J")
    assert capsys.readouterr().err == f"first\nmeasuring {SHOWN}\\x1b[2J\n"


@pytest.mark.parametrize("content", [unsupported(EVIL), supported(EVIL)], ids=["unsupported", "supported"])
def test_a_report(content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(content)
    import_model.main([str(path), "--report"])
    written = capsys.readouterr()
    assert r"\x1b]0;owned\x07" in written.out
    assert is_harmless(written.out)
    assert is_harmless(written.err)


def test_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(supported(EVIL))
    assert run.main([str(path), "--reference"]) == 0
    written = capsys.readouterr()
    assert SHOWN in written.out
    assert is_harmless(written.out)
