"""Keys of the cache: where anything that a network depends on differs, nothing is found, elsewhere it is."""

import shutil
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from cached import CLIP, clip, entries, is_cached, kept, model, names, nothing_is_compiled
from onnx_graphs import ModelBuilder

import qdialect
from qdialect.cache import fingerprint
from qdialect.cache.store import Store
from qdialect.driver import compile_model
from qdialect.support import registry
from qdialect.support.diagnostics import InputError, QDialectError

__all__ = ["clip", "kept", "model"]


def test_a_copy_of_the_model_is_the_same_model(model: Path, kept: Store, tmp_path: Path) -> None:
    qdialect.compile(model)
    copy = shutil.copy(model, tmp_path / "copy.tflite")
    with nothing_is_compiled():
        qdialect.compile(copy)


def missed(compile_: Callable[[], object], store: Store) -> bool:
    """Whether a compilation adds to what is kept."""
    before = names(store)
    compile_()
    return bool(names(store) - before)


def test_each_argument_counts(model: Path, kept: Store) -> None:
    qdialect.compile(model)
    different: list[dict[str, Any]] = [
        {"target": "generic"},
        {"threads": 2},
        {"profile": "tflite-xnnpack"},
        {"fallback": "none"},
    ]
    for arguments in different:
        compile_ = partial(qdialect.compile, model, **arguments)
        assert missed(compile_, kept), arguments
        assert not missed(compile_, kept), arguments


def test_each_byte_of_the_model_counts(clip: Path, kept: Store) -> None:
    assert isinstance(found := qdialect.compile(clip)(np.full((2, 3), 100, np.int8)), np.ndarray)
    assert found.max() == 9
    clip.write_text(CLIP.replace("9", "8"))
    assert isinstance(found := qdialect.compile(clip)(np.full((2, 3), 100, np.int8)), np.ndarray)
    assert found.max() == 8


def test_names_and_scales_count_where_code_is_the_same(kept: Store) -> None:
    for name, scale in (("image", "0.5"), ("other", "0.5"), ("other", "0.25")):
        text = CLIP.replace("image", name).replace("0.5", scale)
        port = qdialect.compile(qdialect.parse(text)).inputs[0]
        assert (port.name, port.scale) == (name, float(scale))


def test_the_cpu_counts(clip: Path, kept: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    qdialect.compile(clip)
    monkeypatch.setattr(fingerprint, "cpu", lambda: "another CPU")
    assert missed(lambda: qdialect.compile(clip), kept)


def test_permission_for_matrix_tiles_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = (
        "vendor_id : GenuineIntel",
        "cpu family : 6",
        "model : 143",
        "stepping : 8",
        "flags : fpu amx_tile amx_int8",
    )
    path = tmp_path / "cpuinfo"
    path.write_text("\n".join(lines))
    monkeypatch.setattr(fingerprint, "_CPU_INFO", path)

    def text(permitted: bool) -> str | None:
        monkeypatch.setattr(fingerprint, "may_use_tiles", lambda: permitted)
        return fingerprint.cpu.__wrapped__()

    assert text(permitted=True) != text(permitted=False)
    path.write_text("\n".join(lines).replace("amx_tile amx_int8", ""))
    assert text(permitted=True) == text(permitted=False)


@pytest.mark.parametrize(("old", "new"), [("torch_mlir-2", "torch_mlir-3"), ("numpy-2", "numpy-3")])
def test_versions_count(old: str, new: str, clip: Path, kept: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    qdialect.compile(clip)
    packages = fingerprint.packages(())
    assert old in packages

    def changed(more: Sequence[str]) -> str:
        return packages.replace(old, new)

    monkeypatch.setattr(fingerprint, "packages", changed)
    assert missed(lambda: qdialect.compile(clip), kept)


def change_own_file(monkeypatch: pytest.MonkeyPatch, name: str, *, grown: int = 0, later: int = 0) -> None:
    """Let one of the files of the project have another size, or another time in nanoseconds."""
    files = fingerprint.own_files()
    changed = [(one, size + grown, time + later) if one == name else (one, size, time) for one, size, time in files]
    assert changed != files
    monkeypatch.setattr(fingerprint, "own_files", lambda: changed)


@pytest.mark.parametrize(("grown", "later"), [(1, 0), (0, -1)])
def test_each_module_of_the_project_counts(
    grown: int, later: int, clip: Path, kept: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    qdialect.compile(clip)
    change_own_file(monkeypatch, "lowering/x86_to_llvm/to_llvm.py", grown=grown, later=later)
    assert missed(lambda: qdialect.compile(clip), kept)


def test_the_package_that_reads_a_model_counts(model: Path) -> None:
    assert len({fingerprint.fingerprint(suffix) for suffix in ("", ".tflite", ".onnx", ".pt2")}) == 4


def test_a_module_that_extends_the_compiler_turns_the_cache_off(clip: Path, kept: Store) -> None:
    qdialect.compile(clip)
    registry.Registry[Any]("thing").add(["own"], registry.import_modules)
    assert is_cached(qdialect.compile(clip))
    registry.Registry[Any]("thing").add(["foreign"], first)
    assert not is_cached(qdialect.compile(clip))


def test_an_archive_that_runs_code_is_never_found(clip: Path, kept: Store) -> None:
    qdialect.compile(clip, trust=True)
    assert entries(kept, "answer") == []


def test_anything_but_a_regular_file_is_compiled_each_time(kept: Store) -> None:
    assert missed(lambda: qdialect.compile(qdialect.parse(CLIP)), kept)
    with pytest.raises(QDialectError):
        qdialect.compile("/dev/null")
    assert entries(kept, "answer") == []


def with_weights(path: Path, weight: int) -> None:
    """A model whose weights lie in the file `weights` of its folder."""
    builder = ModelBuilder()
    x = builder.quantize(builder.input("x", ("N", 4)), (1.0, 0))
    w = builder.weight(np.full((4, 4), weight, np.int8), 1.0)
    builder.quantize(builder.node("MatMul", builder.dequantize(x, (1.0, 0)), w), (1.0, 0))
    model = onnx.load_from_string(builder.finish(builder.nodes[-1].output[0]))
    save: Any = vars(onnx)["save"]
    save(model, str(path), save_as_external_data=True, location="weights", size_threshold=16)


def first(executable: Any, rows: int = 1) -> int:
    return int(executable(np.ones((rows, 4), np.float32))[0, 0])


def test_files_of_weights_count(kept: Store, tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    paths = [tmp_path / name / "model.onnx" for name in ("one", "two")]
    for path, weight in zip(paths, (2, 3), strict=True):
        with_weights(path, weight)
        assert (path.parent / "weights").stat().st_size
    assert paths[0].read_bytes() == paths[1].read_bytes()
    assert [first(qdialect.compile(path)) for path in paths] == [8, 12]
    with nothing_is_compiled():
        assert [first(qdialect.compile(path)) for path in paths] == [8, 12]
    # The error is that of a model without a cache.
    (paths[0].parent / "weights").unlink()
    with pytest.raises(QDialectError, match="must be in 'weights' in the model's folder"):
        qdialect.compile(paths[0])


def test_each_shape_is_kept(kept: Store, tmp_path: Path) -> None:
    with_weights(tmp_path / "model.onnx", 2)
    cold = qdialect.compile(tmp_path / "model.onnx")
    assert [first(cold, rows) for rows in (1, 3)] == [8, 8]
    with nothing_is_compiled():
        warm = qdialect.compile(tmp_path / "model.onnx")
        assert [first(warm, rows) for rows in (1, 3)] == [8, 8]
        assert qdialect.compile(tmp_path / "model.onnx", batch=3).inputs[0].shape == (3, 4)
        assert qdialect.compile(tmp_path / "model.onnx", dims={"N": 3}).inputs[0].shape == (3, 4)
    assert missed(lambda: qdialect.compile(tmp_path / "model.onnx", dims={"N": 5}), kept)
    with pytest.raises(InputError, match="extents must be open extents of inputs, but got M"):
        warm.for_shape({"M": 2})


def test_a_model_that_changes_while_it_is_read_is_not_kept(
    clip: Path, kept: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    compile_file = compile_model.compile_file

    def changed(*arguments: Any, **others: Any) -> Any:
        found = compile_file(*arguments, **others)
        clip.write_text(CLIP.replace("9", "8"))
        return found

    monkeypatch.setattr(compile_model, "compile_file", changed)
    qdialect.compile(clip)
    assert entries(kept, "answer") == []
