"""A test whose model is absent is skipped with the reason, and fails in CI."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TEST_FOLDER = Path(__file__).resolve().parents[1]
TEST = """
def test_model(require_model):
    require_model("no_such_model")

def test_recording(require_reference):
    require_reference("no_such_model", "layers")
"""


@pytest.mark.parametrize(("ci", "outcome"), [("", "2 skipped"), ("true", "2 failed")])
def test_outcome(tmp_path: Path, ci: str, outcome: str) -> None:
    (tmp_path / "test_it.py").write_text(TEST)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-rsf", "-p", "conftest", "-p", "no:cacheprovider", "test_it.py"],
        cwd=tmp_path,
        env={**os.environ, "CI": ci, "PYTHONPATH": str(TEST_FOLDER), "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert outcome in done.stdout
    assert "no_such_model is not here: run 'make models' or set QDIALECT_MODELS" in done.stdout
