"""Steps in addition to the request are logged, a line each, on the logger of the package."""

import io
import logging
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cached import kept as kept
from onnx_graphs import ModelBuilder
from subprocesses import output_of

import qdialect
from qdialect.cache import fingerprint
from qdialect.cache.store import Store
from qdialect.cli import import_model, run
from qdialect.driver.fallback import FallbackWarning
from qdialect.passes import observers
from qdialect.support import log
from qdialect.support.diagnostics import InputError


@pytest.fixture(autouse=True)
def lines(caplog: pytest.LogCaptureFixture) -> Generator[None]:
    """Everything is logged, and nothing has been said before; later commands configure the logger anew."""
    log.once.cache_clear()
    with caplog.at_level(logging.DEBUG, "qdialect"):
        yield
    log.once.cache_clear()
    log.configure.cache_clear()


def model(folder: Path, operator: str, shape: tuple[Any, ...]) -> Path:
    b = ModelBuilder()
    value = b.node("Relu", b.node(operator, b.input("x", shape)))
    path = folder / "model.onnx"
    path.write_bytes(b.finish(value, dtype=np.float32))
    return path


def test_a_network_without_a_quantized_node(
    tmp_path: Path, kept: Store, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    path = model(tmp_path, "Neg", (2, 3))
    wanted = "'model.onnx' has no quantized node and computes in floats: quantize_static of onnxruntime.quantization"
    for _ in ("compiled", "found in the cache"):
        caplog.clear()
        log.once.cache_clear()
        assert type(qdialect.compile(path)).__name__ == "CachedExecutable"
        (record,) = [one for one in caplog.records if one.levelno == logging.WARNING]
        assert record.getMessage().startswith(wanted)
    log.once.cache_clear()
    assert import_model.main([str(path)]) == 0
    assert wanted in caplog.text
    text = "func.func @main(%x: tensor<2xi8>) -> tensor<2xi8> {\nreturn %x : tensor<2xi8>\n}"
    (tmp_path / "module.mlir").write_text(text)
    caplog.clear()
    qdialect.compile(tmp_path / "module.mlir")
    assert not [one for one in caplog.records if one.levelno > logging.DEBUG]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_long_steps_are_shown_on_a_terminal(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "qdialect")
    module = qdialect.parse("func.func @main(%x: tensor<2xi8>) -> tensor<2xi8> {\nreturn %x : tensor<2xi8>\n}")
    for patience, is_shown in ((60.0, False), (0.0, True)):
        terminal = Terminal()
        monkeypatch.setattr(sys, "stderr", terminal)
        monkeypatch.setattr(observers, "PATIENCE", patience)
        qdialect.compile(module, cache=False)
        lines = terminal.getvalue().split("\r")
        assert ("qdialect: compiling, 0 s: qnn-to-linalg" in [line.rstrip() for line in lines]) == is_shown
        # The line is empty again.
        assert not "".join(lines[-2:]).strip()
    caplog.set_level(logging.DEBUG, "qdialect")
    qdialect.compile(module, cache=False)
    assert any(one.message.startswith("pass qnn-to-linalg took 0.") for one in caplog.records)


def test_progress_is_told_and_may_end_it(tmp_path: Path, kept: Store) -> None:
    path = model(tmp_path, "Neg", (2, 3))

    def interrupt(step: str) -> None:
        if step == "qnn-to-x86":
            raise EOFError(step)

    with pytest.raises(EOFError, match="qnn-to-x86"):
        qdialect.compile(path, progress=interrupt)
    for cache, last in ((False, "qnn-to-llvm"), (True, "machine code of kernels"), (True, None)):
        steps: list[str] = []
        qdialect.compile(path, cache=cache, progress=steps.append)
        assert ("qnn-to-linalg" in steps) == (last is not None)
        assert (steps or [None])[-1] == last


def test_a_fallback_and_another_shape(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = model(tmp_path, "Hardmax", ("N", 3))
    with pytest.warns(FallbackWarning, match="ONNX Runtime runs 1 of 2 nodes"):
        qdialect.compile(path, cache=False)
    executable = qdialect.compile(path, cache=False, fallback="framework")
    executable(np.ones((4, 3), np.float32))
    said = [record.getMessage() for record in caplog.records if record.levelno == logging.INFO]
    assert [text.partition(":")[0] for text in said] == [
        "ONNX Runtime runs 1 of 2 nodes",
        "ONNX Runtime runs 1 of 2 nodes",
        "'model.onnx' is compiled for other extents",
    ]
    assert said[2].endswith(": N=4")


def test_a_cache_that_is_off(
    tmp_path: Path, kept: Store, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = model(tmp_path, "Neg", (2, 3))

    def said() -> list[tuple[str, str]]:
        caplog.clear()
        log.once.cache_clear()
        assert type(qdialect.compile(path)).__name__ != "CachedExecutable"
        records = [one for one in caplog.records if one.levelno > logging.DEBUG]
        return [(one.levelname, one.getMessage()) for one in records if "in floats" not in one.getMessage()]

    files = fingerprint.own_files()
    name, size, _ = files[0]
    with monkeypatch.context() as changed:
        changed.setattr(fingerprint, "own_files", lambda: [(name, size, 1 << 62), *files[1:]])
        reason = f"file '{name}' of the package was changed after its import, or has a time in the future"
        assert said() == [("WARNING", f"nothing is taken from the cache of compiled networks or kept there: {reason}")]
    off = "the cache of compiled networks is not used: "
    kept.path.chmod(0o777)
    assert said() == [("WARNING", f"{off}'{kept.path}' must have mode 700, but has 777")]
    with monkeypatch.context() as changed:
        changed.setenv("QDIALECT_CACHE", "off")
        assert said() == [("INFO", f"{off}QDIALECT_CACHE is off")]


def test_the_environment_names_the_level(monkeypatch: pytest.MonkeyPatch) -> None:
    program = """
import os, sys
from qdialect.support import log, options
sys.stderr = sys.stdout
for level in ("info", "warning"):
    os.environ[log.VARIABLE] = level
    log.configure.cache_clear()
    options.CompileOptions()
    log.LOG.info("told \\x1b[2J %s", level)
    log.LOG.warning("seen")
"""
    assert output_of(program).splitlines() == [
        "qdialect: info: told \\x1b[2J info",
        "qdialect: warning: seen",
        "qdialect: warning: seen",
    ]
    monkeypatch.setenv(log.VARIABLE, "loud")
    log.configure.cache_clear()
    with pytest.raises(InputError, match=r"QDIALECT_LOG must be one of 'debug', 'info', .* but got 'loud'"):
        qdialect.compile("absent.onnx")


@pytest.mark.parametrize("flags", [[], ["--quiet"]])
def test_a_quiet_command_says_nothing_but_errors(
    flags: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = model(tmp_path, "Hardmax", (2, 3))
    assert run.main([str(path), *flags]) == 0
    said = capsys.readouterr()
    assert ("warning" in said.err) == (not flags)
    assert "output" in said.out
    # It ends with the command.
    assert run.main([str(path)]) == 0
    assert "warning" in capsys.readouterr().err
