"""tools/record: drawn cases are the recorded ones."""

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import recordings
from recordings import Recording

from tools.record.__main__ import main, record
from tools.record.families import FAMILIES
from tools.record.family import Array, Case, Family


def test_every_file_has_a_family() -> None:
    assert sorted(FAMILIES) == sorted(path.stem for path in recordings.FOLDER.glob("*.npz"))


@pytest.mark.parametrize("name", FAMILIES)
def test_a_family_draws_what_is_recorded(name: str) -> None:
    """The tests of the front ends import every recorded model, so that they import every drawn one."""
    drawn = {case.name: case for case in FAMILIES[name].draw()}
    recorded = recordings.read_family(name)
    assert list(drawn) == list(recorded)
    for case, other in zip(drawn.values(), recorded.values(), strict=True):
        assert case.model == other.model, case.name
        assert all(map(_is_same, case.inputs, other.inputs)), case.name


def _is_same(found: Array, wanted: Array) -> bool:
    return (found.dtype, found.shape, found.tobytes()) == (wanted.dtype, wanted.shape, wanted.tobytes())


def _doubling(model: bytes, inputs: tuple[Array, ...]) -> tuple[Array, ...]:
    """A framework whose model is the number to add."""
    return tuple(array * 2 + int(model) for array in inputs)


def _draw() -> Iterator[Case]:
    yield Case("one_f32", b"1", (np.array([1.5, np.nan], dtype=np.float32),))
    yield Case("two_i8", b"0", (np.array([[3]], dtype=np.int8), np.array(4, dtype=np.int8)))


DOUBLING = Family("doubling", _draw, _doubling)


def test_recordings_are_read_as_they_were_written(tmp_path: Path) -> None:
    record(DOUBLING, tmp_path / "new")
    path = tmp_path / "new" / "doubling.npz"
    cases = recordings.read(path)
    assert list(cases) == ["one_f32", "two_i8"]
    assert [case.model for case in cases.values()] == [b"1", b"0"]
    assert [array.tolist() for array in cases["two_i8"].inputs] == [[[3]], 4]
    assert [array.tolist() for array in cases["two_i8"].outputs] == [[[6]], 8]
    assert list(path.parent.iterdir()) == [path]


def test_the_exit_status_says_whether_a_check_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(FAMILIES, "doubling", DOUBLING)
    arguments = ["doubling", "--output-dir", str(tmp_path)]
    assert main(arguments) == 0
    assert main([*arguments, "--check"]) == 0
    assert capsys.readouterr().out.endswith("doubling: 2 cases, 0 outputs differ\n")
    recordings.write(tmp_path / "doubling.npz", {"one": Recording(b"1", (np.array([1]),), (np.array([4]),))})
    assert main([*arguments, "--check"]) == 1
    assert capsys.readouterr().out == "doubling: one.out0 differs\ndoubling: 1 cases, 1 outputs differ\n"


@pytest.mark.parametrize(
    ("family", "package"), [("onnx_movement", "onnxruntime"), ("tflite_casts", "ai_edge_litert.interpreter")]
)
def test_an_absent_framework_is_said(
    family: str, package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    assert main([family, "--output-dir", str(tmp_path)]) == 2
    assert "run this with `make record`, whose environment has the frameworks" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
