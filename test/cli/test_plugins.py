"""Plugins: the template in `examples/plugin`, by a flag and by an entry point; what fails while it is loaded."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from qdialect.cli import compile as compile_command
from qdialect.cli import import_model, opt, run

PLUGIN = Path(__file__).resolve().parents[2] / "examples" / "plugin"
PROGRAM = """
import numpy as np, qdialect
from qdialect.cli import opt, terminal
from qdialect.support.registry import foreign_modules

assert opt.main(["--list-passes"]) == 0
# The file of an editable package may be named too.
assert opt.main(["--list-passes", f"--load-pass-plugin={PLUGIN}"]) == 0
text = open(MODEL).read()
x = np.arange(-16, 16, dtype=np.int8).reshape(4, 8)
before = qdialect.compile(qdialect.parse(text))(x)
module = qdialect.parse(text)
qdialect.PassManager("tanh-to-softsign").run(module)
alone = qdialect.compile(module)(x)
assert (qdialect.compile(module, batch="dynamic")(x[:3]) == alone[:3]).all()
assert (alone != before).any()
values = x / 4.0
first = np.sign(values) * np.clip(np.floor(np.abs(values / (1 + np.abs(values))) * 128 + 0.5), 0, 127)
np.testing.assert_allclose(alone, np.clip(np.tanh(first / 128) * 256, -128, 127), atol=1)
qdialect.PassManager("qnn-to-tosa").run(module)
assert "qnn.softsign" not in str(module)
assert foreign_modules() == {"qdialect_softsign"}
"""


def installed(folder: Path, value: str) -> dict[str, str]:
    """The environment of a process that finds a package with an entry point."""
    info = folder / "softsign-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: softsign\nVersion: 1\n")
    (info / "entry_points.txt").write_text(f"[qdialect.plugins]\nsoftsign = {value}\n")
    return {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (folder, PLUGIN)))}


def test_the_template() -> None:
    command = [sys.executable, "-c", "from lit.main import main; main()", "-v", str(PLUGIN / "test")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "Passed: 1" in done.stdout, done.stdout + done.stderr


def test_an_op_of_an_installed_plugin_is_as_those_of_the_project(tmp_path: Path) -> None:
    names = f"PLUGIN, MODEL = {str(PLUGIN / 'qdialect_softsign.py')!r}, {str(PLUGIN / 'test' / 'softsign.mlir')!r}"
    program = f"{names}\n{PROGRAM}"
    environment = installed(tmp_path, "qdialect_softsign")
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "tanh-to-softsign" in done.stdout
    (tmp_path / "broken.py").write_text("\n\n1 / 0\n")
    (tmp_path / "softsign-1.dist-info" / "entry_points.txt").write_text("[qdialect.plugins]\nbad = broken\n")
    command = [sys.executable, "-m", "qdialect.cli.opt", "--list-passes"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    at = f"{tmp_path}/broken.py:3"
    assert done.stderr == f"error: cannot load plugin 'bad' (broken): {at}: ZeroDivisionError: division by zero\n"


@pytest.mark.parametrize("main", [compile_command.main, import_model.main, opt.main, run.main])
def test_every_command_takes_plugins(
    main: Callable[[Sequence[str]], int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "plugin.py"
    path.write_text("raise ValueError('no')")
    statuses: list[object] = []
    try:
        statuses.append(main(["model.mlir", f"--load-pass-plugin={path}"]))
    except SystemExit as error:
        statuses.append(error.code)
    assert statuses == [1]
    assert f"argument --load-pass-plugin: cannot load '{path}': {path}:1: ValueError: no" in capsys.readouterr().err
