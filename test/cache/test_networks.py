"""Networks of the cache: whole executables with the same results, whatever becomes of the folder."""

from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cached import CLIP, clip, entries, is_cached, kept, model, names, nothing_is_compiled, replaced
from drawn_graphs import random_inputs
from drawn_networks import CONVOLUTION, DIVISIBLE, STATES
from onnx_graphs import ModelBuilder
from subprocesses import output_of

import qdialect
from qdialect.cache import executable
from qdialect.cache.store import Store, packed, unpacked
from qdialect.cli import cache, run
from qdialect.runtime import compile_module
from qdialect.support.diagnostics import CompileError, InputError, QDialectError
from qdialect.targets import host_features

__all__ = ["clip", "kept", "model"]

DENSE = """
func.func @main(%x: tensor<32x64xui8>) -> tensor<32x32xi32> {
  %w = "qnn.constant"() {value = dense<3> : tensor<32x64xi8>} : () -> tensor<32x64xi8>
  %0 = "qnn.dense"(%x, %w) {
    input_scale = 0.5 : f64, input_zero_point = 0 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<32x64xui8>, tensor<32x64xi8>) -> tensor<32x32xi32>
  return %0 : tensor<32x32xi32>
}
"""
"""A product that is multiplied in matrix tiles where the CPU has them."""


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


def test_states_begin_anew(kept: Store, tmp_path: Path) -> None:
    """A network of the cache has its own, and does not begin with those of another one."""
    path = tmp_path / "model.mlir"
    path.write_text(STATES)
    calls = [(np.full((1, 16), call, np.float32), np.array([call], np.int32)) for call in (1, 2, 3)]
    cold = qdialect.compile(path)
    wanted = [np.array(cold(*given)) for given in calls]
    before = names(kept)
    with nothing_is_compiled():
        warm = qdialect.compile(path)
    assert names(kept) == before
    outputs = [np.empty((8, 16), np.float32)]
    warm.bind(calls[0], outputs)()
    np.testing.assert_array_equal(outputs[0], wanted[0])
    for given, other in zip(calls[1:], wanted[1:], strict=True):
        np.testing.assert_array_equal(warm(*given), other)


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


@pytest.mark.skipif("amx-tile" not in host_features(), reason="this CPU has no matrix tiles")
@pytest.mark.parametrize("target", ["host", "amxint8"])
def test_matrix_tiles_may_be_used_in_a_process_that_finds_it(target: str, kept: Store, tmp_path: Path) -> None:
    path = tmp_path / "dense.mlir"
    path.write_text(DENSE)
    wanted = qdialect.compile(path, target=target)(np.ones((32, 64), np.uint8))
    program = (
        "import sys, numpy as np, qdialect\n"
        "print(qdialect.compile(sys.argv[1], target=sys.argv[2])(np.ones((32, 64), np.uint8)).tolist())\n"
    )
    with nothing_is_compiled():
        assert output_of(program, str(path), target).strip() == str(np.asarray(wanted).tolist())


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
        raise executable.UnloadableError("mounted without the right to execute")

    monkeypatch.setattr(executable, "code_of_entry", refused)
    for _ in range(2):
        found = qdialect.compile(clip)
        assert not is_cached(found)
        assert isinstance(result := found(np.full((2, 3), 100, np.int8)), np.ndarray)
        assert result.max() == 9


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


# Entries of the cache: what was written is read, and nothing else.

SECTIONS = {"library": b"\x7fELF" + bytes(range(7)), "empty": b"", "record": b"about"}


def test_sections_are_read_as_they_were_written() -> None:
    found = unpacked("key", packed("key", SECTIONS))
    assert found is not None
    assert {name: bytes(data) for name, data in found.items()} == SECTIONS


def test_every_byte_counts() -> None:
    content = packed("key", SECTIONS)
    assert all(unpacked("key", content[:size]) is None for size in range(len(content)))
    assert all(unpacked("key", content[size:]) is None for size in range(1, len(content)))
    assert unpacked("key", content + b"\0") is None


def test_an_entry_under_another_name_is_none() -> None:
    assert unpacked("other", packed("key", SECTIONS)) is None


# The command ``qdialect-cache``, and options of others that turn the cache off.


def printed(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> str:
    assert cache.main(arguments) == status
    said = capsys.readouterr()
    return said.err if status else said.out


def test_info_says_where_and_how_much(kept: Store, capsys: pytest.CaptureFixture[str]) -> None:
    kept.put("key", {"content": bytes(5000)})
    (kept.path / ".draft").touch()
    lines = printed(capsys, "info").splitlines()
    assert lines == [f"folder:  {kept.path.parent}", "entries: 1", f"size:    8192 bytes of at most {1 << 30}"]


def test_prune_leaves_so_much(kept: Store, capsys: pytest.CaptureFixture[str]) -> None:
    for key in "abcd":
        kept.put(key, {"content": b""})
    assert printed(capsys, "prune") == "removed 0 files\n"
    assert printed(capsys, "prune", "--size", "12K") == "removed 2 files\n"
    assert printed(capsys, "prune", "--size", "0") == "removed 2 files\n"


def test_errors_are_told(kept: Store, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    wanted = "error: --size must be a number of bytes such as 2000000, 500M or 2G, but got 'much'\n"
    assert printed(capsys, "prune", "--size", "much", status=1) == wanted
    kept.path.chmod(0o755)
    for command in ("info", "clear", "prune"):
        said = printed(capsys, command, status=1)
        assert (
            said
            == f"error: cannot use the cache in '{kept.path.parent}': '{kept.path}' must have mode 700, but has 755\n"
        )
    monkeypatch.setenv("QDIALECT_CACHE_SIZE", "1.5G")
    assert "QDIALECT_CACHE_SIZE must be a number of bytes" in printed(capsys, "info", status=1)


def test_run_keeps_what_it_compiles(kept: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "clip.mlir"
    path.write_text(CLIP)
    assert run.main([str(path), "--no-cache"]) == 0
    assert names(kept) == set()
    assert run.main([str(path)]) == 0
    cold = names(kept)
    assert cold
    with nothing_is_compiled():
        assert run.main([str(path), "--reference"]) == 0
    assert names(kept) == cold
    assert "0 of 6 elements differ" in capsys.readouterr().out
