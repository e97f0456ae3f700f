"""Kernels in the cache: those of one network serve another one, and objects are loaded with and without a linker."""

import os
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from c_programs import ran
from cached import entries, kept, nothing_is_compiled
from drawn_graphs import random_inputs
from drawn_networks import CONVOLUTION, DIVISIBLE

import qdialect
from qdialect.aot.object_file import functions_of, object_file
from qdialect.cache import executable, kernels, networks
from qdialect.cache.store import Store
from qdialect.ir._mlir import ir
from qdialect.lowering.pipeline.phases import Phase, lower
from qdialect.runtime import compile_module
from qdialect.runtime.compiler import PERF_FOLDER
from qdialect.runtime.library import PERF_MAP
from qdialect.support.interface import kernel_names
from qdialect.targets import host

__all__ = ["kept"]

LAYERS = """
func.func @main(%x: tensor<4x64xui8>) -> tensor<4x{rows}xui8> {{
  %w = "qnn.constant"() {{value = dense<{weight}> : tensor<{rows}x64xi8>}} : () -> tensor<{rows}x64xi8>
  %0 = "qnn.dense"(%x, %w) {{
    input_scale = {scale} : f64, input_zero_point = 7 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>
  }} : (tensor<4x64xui8>, tensor<{rows}x64xi8>) -> tensor<4x{rows}xi32>
  %1 = "qnn.requantize"(%0) {{
    input_scale = {scale} : f64, weight_scales = array<f64: 0.25>, input_zero_points = array<i64: 0>,
    output_scale = 64.0 : f64, output_zero_point = 3 : i64, axis = 1 : i64, rounding = "fixed64_up", multiplier = "f64"
  }} : (tensor<4x{rows}xi32>) -> tensor<4x{rows}xui8>
  return %1 : tensor<4x{rows}xui8>
}}
"""


def layer(**changes: object) -> str:
    return LAYERS.format(**{"rows": 32, "weight": 3, "scale": 0.55, **changes})


def stack(*rows: int) -> str:
    """Several layers of `LAYERS` on one input."""
    body, results = "", list[str]()
    for index, count in enumerate(rows):
        inside = layer(rows=count).split("{\n", 1)[1].rsplit("return", 1)[0]
        for name in ("w", "0", "1"):
            inside = re.sub(rf"%{name}\b", f"%v{index}_{name}", inside)
        body += inside
        results.append(f"tensor<4x{count}xui8>")
    values, types = ", ".join(f"%v{index}_1" for index in range(len(rows))), ", ".join(results)
    return f"func.func @main(%x: tensor<4x64xui8>) -> ({types}) {{\n{body}return {values} : {types}\n}}"


@pytest.fixture
def without_linker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "absent")


def same_bits(text: str, threads: int = 1) -> None:
    module = qdialect.parse(text)
    inputs = random_inputs(module)
    found = qdialect.compile(module, threads=threads)
    results = [one(*inputs) for one in (found, compile_module(module, threads=threads))]
    outputs = [one if isinstance(one, tuple) else (one,) for one in results]
    for one, wanted in zip(*outputs, strict=True):
        np.testing.assert_array_equal(one, wanted)


@pytest.mark.parametrize("changes", [{"weight": 5}, {"scale": 0.6}])
def test_a_layer_with_other_weights_has_the_same_kernels(changes: dict[str, object], kept: Store) -> None:
    same_bits(layer())
    before = entries(kept, "object")
    assert before
    same_bits(layer(**changes))
    assert entries(kept, "object") == before
    assert len(entries(kept, "record")) == 2


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("text", [CONVOLUTION, DIVISIBLE])
def test_kernels_of_the_cache_give_the_same_bits(text: str, threads: int, kept: Store) -> None:
    same_bits(text, threads)
    for network in entries(kept, "record"):
        network.unlink()
    compiled: list[str] = []

    def noted(module: ir.Module, entry: str, **how: Any) -> bytes:
        compiled.append(entry)
        return object_file(module, entry, **how)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "object_file", noted)
        same_bits(text, threads)
    # All else is there.
    assert compiled == ["main"]


@pytest.mark.parametrize("linker", [True, False])
def test_networks_share_the_kernels_that_they_have_in_common(
    linker: bool, kept: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not linker:
        monkeypatch.setenv("CC", "absent")
    same_bits(stack(16, 32))
    (first,) = entries(kept, "object")
    same_bits(stack(32, 48))
    assert len(entries(kept, "object")) == 2
    # From both groups, and nothing else.
    same_bits(stack(16, 32, 48))
    assert len(entries(kept, "object")) == 2
    # Kernels of a group that has gone are compiled again, and an object may have one that another has too.
    first.unlink()
    same_bits(stack(16, 48))
    same_bits(stack(48, 32, 16))
    assert first.name not in {path.name for path in entries(kept, "object")}
    for kernel in sorted(entries(kept, "group"))[::2]:
        kernel.unlink()
    same_bits(stack(32, 16, 48))


@pytest.mark.parametrize("threads", [1, 2])
def test_without_a_linker_the_objects_are_loaded(threads: int, kept: Store, without_linker: None) -> None:
    same_bits(DIVISIBLE, threads)
    (network,) = entries(kept, "record")
    sections = kept.get(network.name)
    assert sections is not None
    assert "library" not in sections
    assert "object.0" in sections
    with nothing_is_compiled():
        qdialect.compile(qdialect.parse(DIVISIBLE), threads=threads)


def test_without_linker_and_loader_nothing_is_kept(
    kept: Store, without_linker: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("qdialect.cache.executable.can_load_objects", lambda: False)
    same_bits(layer())
    assert entries(kept, "record") == []


def test_a_damaged_kernel_is_compiled_anew(kept: Store) -> None:
    same_bits(layer())
    for path in kept.files():
        content = bytearray(path.path.read_bytes())
        content[70] ^= 1
        path.path.unlink()
        path.path.write_bytes(content)
        path.path.chmod(0o600)
    same_bits(layer())


def test_a_kernel_that_needs_its_module_is_compiled_with_it() -> None:
    module = qdialect.parse("""
    memref.global "private" constant @own : memref<1xi8> = dense<1>
    memref.global "private" constant @shared : memref<1xi8> = dense<2>
    func.func private @outside()
    func.func private @alone() { %0 = memref.get_global @own : memref<1xi8> return }
    func.func private @calls() { func.call @outside() : () -> () return }
    func.func private @calls_other() { func.call @alone() : () -> () return }
    func.func private @reads() { %0 = memref.get_global @shared : memref<1xi8> return }
    func.func private @reads_too() { %0 = memref.get_global @shared : memref<1xi8> return }
    func.func @main() { return }
    """)
    found = kernels.kernels_of(module)
    assert [(kernel.name, kernel.constants) for kernel in found] == [("alone", ("own",))]


def test_names_of_the_network_are_no_part_of_a_kernel() -> None:
    def key(name: str) -> str:
        text = f'memref.global "private" constant @{name}_parts : memref<1xi8> = dense<1>\n'
        text += f"func.func private @{name}() {{ %0 = memref.get_global @{name}_parts : memref<1xi8> return }}\n"
        (found,) = kernels.kernels_of(qdialect.parse(text + "func.func @main() { return }"))
        return found.key

    assert key("kernel_0_conv") == key("kernel_7_other")
    assert kernels.kernels_of(qdialect.parse("func.func private @k() { return }"), "one") != kernels.kernels_of(
        qdialect.parse("func.func private @k() { return }"), "two"
    )


NAMED = layer().replace("tensor<4x32xi32>\n", 'tensor<4x32xi32> loc("block/fc;bias")\n', 1)


def test_functions_have_the_names_of_nodes_in_debuggers_and_profilers(kept: Store) -> None:
    """A kernel of the cache has one that depends on no network, and gets this network's when it is linked."""
    names = kernel_names(lower(qdialect.parse(NAMED), host(), Phase.LINALG).calls)
    assert any(name.endswith("_block_fc") for name in names)
    qdialect.compile(qdialect.parse(NAMED))
    (entry,) = entries(kept, executable.LIBRARY)
    (sections,) = [kept.get(entry.name) or {}]
    assert set(names) <= {function.name for function in functions_of(bytes(sections[executable.LIBRARY]))}


@pytest.mark.skipif(shutil.which("objdump") is None, reason="binutils are not installed")
def test_line_tables_name_what_a_network_of_the_cache_was_made_of(kept: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = qdialect.compile(qdialect.parse(NAMED))
    inputs = random_inputs(qdialect.parse(NAMED))
    monkeypatch.setenv(PERF_MAP, "1")
    executable = qdialect.compile(qdialect.parse(NAMED))
    assert np.array_equal(executable(*inputs), plain(*inputs))
    mapped = [line.split() for line in Path("/proc/self/maps").read_text().splitlines()]
    files = {words[-1] for words in mapped if words[1] == "r-xp" and words[-1].startswith(str(kept.path))}
    found = [ran("objdump", "--disassemble", "--line-numbers", "--source", file, folder=kept.path) for file in files]
    # Without it a network is another entry, which has none.
    (text,) = [one for one in found if re.search(r"/[0-9a-f]{64}:\d+", one)]
    assert all(f"<{name}>:" in text for name in kernel_names(executable.calls))
    assert re.search(r"/[0-9a-f]{64}:\d+.*\n +%\w+ = ", text)


def test_perf_finds_the_names_of_functions_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PERF_MAP, "1")
    path = Path(PERF_FOLDER, f"perf-{os.getpid()}.map")
    before = path.read_text().splitlines() if path.exists() else []
    found = compile_module(qdialect.parse(NAMED))
    lines = [line.split() for line in path.read_text().splitlines()[len(before) :]]
    assert {line[2] for line in lines} >= {*kernel_names(found.calls), "main"}
    mapped = [line.split()[:2] for line in Path("/proc/self/maps").read_text().splitlines()]
    spans = [[int(end, 16) for end in span.split("-")] for span, how in mapped if "x" in how]
    for start, size, _ in lines:
        assert any(first <= int(start, 16) and int(start, 16) + int(size, 16) <= end for first, end in spans)


def test_a_module_that_was_lowered_further_is_not_kept(kept: Store) -> None:
    module = lower(qdialect.parse(layer()), host(), Phase.X86).module
    assert type(networks.compile_kept(module, qdialect.CompileOptions(), kept)).__name__ == "CompiledExecutable"
    assert kept.files() == []
