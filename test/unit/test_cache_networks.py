"""Networks in the cache: found where all that they depend on is the same, and nowhere else."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Sequence
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from cached import entries, is_cached, kept, names, nothing_is_compiled, replaced
from graphs import random_inputs
from onnx_graphs import ModelBuilder
from phase_networks import CONVOLUTION, DIVISIBLE
from subprocesses import output_of
from tflite_graphs import small_network

import qdialect
from qdialect import compilation, registry
from qdialect.cache import fingerprint, loading
from qdialect.cache.store import Store
from qdialect.diagnostics import CompileError, InputError, QDialectError
from qdialect.runtime import compile_module

__all__ = ["kept"]

CLIP = """
func.func @main(%x: tensor<2x3xi8> {qnn.name = "image", qnn.scale = 0.5 : f64}) -> tensor<2x3xi8> {
  %0 = "qnn.clip"(%x) {min = -5 : i64, max = 9 : i64} : (tensor<2x3xi8>) -> tensor<2x3xi8>
  return %0 : tensor<2x3xi8>
}
"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "small.tflite"
    path.write_bytes(small_network())
    return path


@pytest.fixture
def clip(tmp_path: Path) -> Path:
    path = tmp_path / "clip.mlir"
    path.write_text(CLIP)
    return path


def test_a_network_is_compiled_once(model: Path, kept: Store) -> None:
    cold = qdialect.compile(model)
    before = names(kept)
    with nothing_is_compiled():
        warm = qdialect.compile(model)
    assert is_cached(cold)
    assert is_cached(warm)
    assert names(kept) == before
    array = np.arange(-4, 4, dtype=np.int8).reshape(1, 2, 2, 2)
    fresh = qdialect.compile(model, cache=False)
    assert not is_cached(fresh)
    np.testing.assert_array_equal(warm(array), fresh(array))
    np.testing.assert_array_equal(cold(array), fresh(array))


@pytest.mark.parametrize("text", [CONVOLUTION, DIVISIBLE])
@pytest.mark.parametrize("threads", [1, 2])
def test_it_is_a_whole_executable(text: str, threads: int, kept: Store, tmp_path: Path) -> None:
    module = qdialect.parse(text)
    inputs = random_inputs(module)
    fresh = compile_module(module, threads=threads)
    qdialect.compile(module, threads=threads)
    with nothing_is_compiled():
        found = qdialect.compile(module, threads=threads)
    assert is_cached(found)
    for name in ("inputs", "outputs", "kernels", "calls", "threads", "constants_bytes", "working_memory", "regions"):
        assert getattr(found, name) == getattr(fresh, name), name
    wanted = fresh(*inputs)
    np.testing.assert_array_equal(found(*inputs), wanted)
    outputs = [np.empty(port.shape, port.dtype) for port in found.outputs]
    found.bind(inputs, outputs)()
    np.testing.assert_array_equal(outputs[0], np.asarray(wanted).reshape(outputs[0].shape))
    found.save(tmp_path / "found.so")
    fresh.save(tmp_path / "fresh.so")
    np.testing.assert_array_equal(qdialect.load(tmp_path / "found.so")(*inputs), wanted)
    assert b"found_run" in (tmp_path / "found.so").read_bytes()
    with pytest.raises(InputError, match="must be called with"):
        found()
    with pytest.raises(InputError, match="network has one shape"):
        found.for_shape({"N": 2})


def test_it_is_found_in_a_process_that_imports_no_compiler(model: Path, kept: Store) -> None:
    qdialect.compile(model)
    program = (
        "import sys, numpy as np, qdialect\n"
        "print(qdialect.compile(sys.argv[1])(np.ones((1, 2, 2, 2), np.int8)).tolist())\n"
        "loaded = [name for name in sys.modules if name.split('.')[0] in ('torch_mlir', 'tflite', 'onnx', 'torch', "
        "'llvmlite') or name.startswith(('qdialect.lowering', 'qdialect.frontends', 'qdialect.passes'))]\n"
        "assert loaded == [], loaded\n"
    )
    wanted = qdialect.compile(model, cache=False)(np.ones((1, 2, 2, 2), np.int8))
    assert isinstance(wanted, np.ndarray)
    assert output_of(program, str(model)).strip() == str(wanted.tolist())


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


def test_settings_of_the_process_count(clip: Path, kept: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    qdialect.compile(clip)
    monkeypatch.setenv("QDIALECT_ANYTHING", "1")
    assert missed(lambda: qdialect.compile(clip), kept)
    monkeypatch.setenv("NPY_DISABLE_CPU_FEATURES", "AVX512F")
    assert missed(lambda: qdialect.compile(clip), kept)


def test_the_cpu_counts(clip: Path, kept: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    qdialect.compile(clip)
    monkeypatch.setattr(fingerprint, "cpu", lambda: "another CPU")
    assert missed(lambda: qdialect.compile(clip), kept)


def test_on_an_unknown_cpu_nothing_is_kept(clip: Path, kept: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fingerprint, "cpu", lambda: None)
    assert not is_cached(qdialect.compile(clip))
    assert names(kept) == set()


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
    change_own_file(monkeypatch, "lowering/to_llvm.py", grown=grown, later=later)
    assert missed(lambda: qdialect.compile(clip), kept)


def test_nothing_is_kept_after_a_module_of_the_project_has_changed(
    clip: Path, kept: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    change_own_file(monkeypatch, "aot/elf.py", later=int(time.time() * 1e9))
    assert not is_cached(qdialect.compile(clip))
    assert names(kept) == set()


def test_the_package_that_reads_a_model_counts(model: Path) -> None:
    assert len({fingerprint.fingerprint(suffix) for suffix in ("", ".tflite", ".onnx", ".pt2")}) == 4


def test_a_module_that_extends_the_compiler_turns_the_cache_off(
    clip: Path, kept: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    qdialect.compile(clip)
    monkeypatch.setattr(registry, "_FOREIGN", set[str]())
    registry.Registry[Any]("thing").add(["own"], registry.import_modules)
    assert is_cached(qdialect.compile(clip))
    registry.Registry[Any]("thing").add(["foreign"], first)
    assert not is_cached(qdialect.compile(clip))


def test_an_archive_that_runs_code_is_never_found(clip: Path, kept: Store) -> None:
    qdialect.compile(clip, trust=True)
    assert entries(kept, "answer") == []


def test_what_is_no_regular_file_is_compiled_each_time(kept: Store) -> None:
    assert missed(lambda: qdialect.compile(qdialect.parse(CLIP)), kept)
    with pytest.raises(QDialectError):
        qdialect.compile("/dev/null")
    assert entries(kept, "answer") == []


def with_weights(path: Path, weight: int) -> None:
    """A model whose weights lie in the file `weights` beside it."""
    builder = ModelBuilder()
    x = builder.quantize(builder.input("x", ("N", 4)), (1.0, 0))
    w = builder.weight(np.full((4, 4), weight, np.int8), 1.0)
    builder.quantize(builder.node("MatMul", builder.dequantize(x, (1.0, 0)), w), (1.0, 0))
    model = onnx.load_from_string(builder.finish(builder.nodes[-1].output[0]))
    save: Any = vars(onnx)["save"]
    save(model, str(path), save_as_external_data=True, location="weights", size_threshold=16)


def first(executable: Any, rows: int = 1) -> int:
    return int(executable(np.ones((rows, 4), np.float32))[0, 0])


def test_files_beside_a_model_count(kept: Store, tmp_path: Path) -> None:
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
    with pytest.raises(QDialectError, match="must be in 'weights' beside the model"):
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
    compile_file = compilation.compile_file

    def changed(*arguments: Any, **others: Any) -> Any:
        found = compile_file(*arguments, **others)
        clip.write_text(CLIP.replace("9", "8"))
        return found

    monkeypatch.setattr(compilation, "compile_file", changed)
    qdialect.compile(clip)
    assert entries(kept, "answer") == []


def test_regions_of_a_model_in_parts_are_kept(kept: Store, tmp_path: Path) -> None:
    builder = ModelBuilder()
    x = builder.dequantize(builder.quantize(builder.input("x", (2, 4)), (1.0, 0)), (1.0, 0))
    found = builder.node("Det", builder.node("Reshape", x, builder.constant(np.array([2, 2, 2]))))
    path = tmp_path / "parts.onnx"
    path.write_bytes(builder.finish(found, dtype=np.float32))
    array = np.arange(8, dtype=np.float32).reshape(2, 4)
    wanted = qdialect.compile(path, fallback="framework")(array)
    with nothing_is_compiled():
        np.testing.assert_array_equal(qdialect.compile(path, fallback="framework")(array), wanted)


def test_errors_are_those_of_a_compilation(clip: Path, kept: Store) -> None:
    def message(**arguments: Any) -> str:
        with pytest.raises(QDialectError) as caught:
            qdialect.compile(clip, **arguments)
        return str(caught.value)

    wrong: list[dict[str, Any]] = [{"target": "z80"}, {"threads": 0}, {"threads": True}, {"profile": "tvm"}]
    cold = [message(**arguments) for arguments in wrong]
    qdialect.compile(clip)
    assert [message(**arguments) for arguments in wrong] == cold
    clip.write_text(CLIP.replace("qnn.clip", "qnn.clap"))
    assert message() == message(cache=False)
    clip.unlink()
    assert message() == message(cache=False)


def test_without_an_openmp_runtime_the_error_is_that_of_a_compilation(
    clip: Path, kept: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    qdialect.compile(clip, threads=2)

    def absent() -> dict[str, int]:
        raise CompileError("more than one thread needs an OpenMP runtime")

    monkeypatch.setattr("qdialect.runtime.openmp.addresses", absent)
    with pytest.raises(CompileError, match="more than one thread needs an OpenMP runtime"):
        qdialect.compile(clip, threads=2)


def test_a_damaged_entry_is_compiled_anew_and_replaced(clip: Path, kept: Store) -> None:
    qdialect.compile(clip)
    (network,) = entries(kept, "record")
    whole = network.read_bytes()
    damages = [
        whole[:100],
        b"",
        whole[:-1],
        bytes(len(whole)),
        whole[:50] + b"x" + whole[51:],
        whole[5000:] + whole[:5000],
    ]
    for damaged in damages:
        replaced(network, damaged)
        found = qdialect.compile(clip)(np.full((2, 3), 100, np.int8))
        assert isinstance(found, np.ndarray)
        assert found.max() == 9
        # The same input gives the same bytes.
        assert network.read_bytes() == whole


def test_an_entry_of_another_network_is_not_taken_for_it(kept: Store) -> None:
    for limit in ("9", "8"):
        qdialect.compile(qdialect.parse(CLIP.replace("9", limit)))
    nine, eight = entries(kept, "record")
    replaced(nine, eight.read_bytes())
    for limit in (9, 8):
        found = qdialect.compile(qdialect.parse(CLIP.replace("9", str(limit))))(np.full((2, 3), 100, np.int8))
        assert isinstance(found, np.ndarray)
        assert found.max() == limit


def test_an_entry_whose_code_cannot_be_loaded_is_no_error(
    clip: Path, kept: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> int:
        raise loading.UnloadableError("mounted without the right to execute")

    monkeypatch.setattr(loading, "address_of_entry", refused)
    for _ in range(2):
        found = qdialect.compile(clip)
        assert not is_cached(found)
        assert isinstance(result := found(np.full((2, 3), 100, np.int8)), np.ndarray)
        assert result.max() == 9


def test_where_nothing_can_be_kept_networks_are_compiled(
    clip: Path, kept: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QDIALECT_CACHE_SIZE", "1")
    assert not is_cached(qdialect.compile(clip))
    assert names(kept) == set()


def test_a_small_cache_stays_small(kept: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QDIALECT_CACHE_SIZE", "40K")
    for limit in range(5, 9):
        found = qdialect.compile(qdialect.parse(CLIP.replace("9", str(limit))))
        assert isinstance(result := found(np.full((2, 3), 100, np.int8)), np.ndarray)
        assert result.max() == limit
    assert sum(file.size for file in kept.files()) <= 40 << 10


def test_processes_share_it(model: Path, kept: Store) -> None:
    array = np.ones((1, 2, 2, 2), np.int8)
    wanted = qdialect.compile(model, cache=False)(array)

    def compile_and_compare() -> None:
        for _ in range(2):
            np.testing.assert_array_equal(qdialect.compile(model)(array), wanted)
            kept.clear()

    processes = [get_context("fork").Process(target=compile_and_compare) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * 3
    assert not [file for file in kept.files() if file.is_draft]
