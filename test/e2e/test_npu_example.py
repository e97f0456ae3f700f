"""examples/npu: a C library takes the convolutions of networks, between kernels of the compiler, bit for bit."""

import ctypes
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from c_programs import EXAMPLES, HERE, STRICT, arrays_of_c, build_c, compiled, ran, tool
from drawn_graphs import random_inputs
from drawn_networks import CONVOLUTION, branched

import qdialect
from qdialect.aot.headers import external_header
from qdialect.cli import run
from qdialect.ir._mlir import ir
from qdialect.reference import interpreter

NPU = EXAMPLES / "npu"
PIPELINE = "fuse-qnn,qnn-outline-fused{{target=npu predicate=npu:takes merge={merge}}},qnn-decompose-fused"
TWO = CONVOLUTION.split("  %2 =")[0] + "  return %1 : tensor<1x6x6x8xi8>\n}\n"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library, built with all warnings."""
    return built(tmp_path_factory.mktemp("npu"))


@pytest.fixture(autouse=True)
def predicate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(NPU), *sys.path])


def built(folder: Path, *options: str, source: Path = NPU / "npu.c") -> Path:
    flags = ("-std=c11", *STRICT, "-O2", "-fPIC", "-shared", f"-I{NPU}", *options)
    ran(tool("cc"), *flags, source, "-lm", "-o", "libnpu.so", folder=folder)
    return folder / "libnpu.so"


def with_externs(module: ir.Module, merge: bool = False) -> ir.Module:
    copy = qdialect.parse(str(module))
    qdialect.PassManager.parse(PIPELINE.format(merge=str(merge).lower())).run(copy)
    return copy


def convolutions(library: Path) -> int:
    """How many convolutions the library has computed in this process."""
    count = ctypes.CDLL(str(library)).npu_convolutions
    count.restype = ctypes.c_ulong
    return int(count())


def test_the_header_is_the_compilers() -> None:
    assert (NPU / "qdialect_external.h").read_text() == external_header()


@pytest.mark.parametrize("merge", [False, True])
def test_it_takes_the_convolutions_of_mobilenet(
    merge: bool, library: Path, require_model: Callable[[str], Path]
) -> None:
    module = qdialect.read_model(require_model("mobilenet_v1_0.25_224_quant"))
    recorded = np.load(require_model("mobilenet_v1_0.25_224_quant").with_suffix(".npz"))
    executable = qdialect.compile(with_externs(module, merge), externals={"npu": str(library)}, threads=2)
    before = convolutions(library)
    np.testing.assert_array_equal(executable(recorded["in_0"]), recorded["ref_0"])
    assert convolutions(library) == before + 28
    # Those before the pool and the one after it.
    assert sum(call.label.startswith("npu_") for call in executable.calls) == (2 if merge else 28)


def test_an_op_that_it_refuses_stays(library: Path) -> None:
    module = branched()
    executable = qdialect.compile(with_externs(module), externals={"npu": library})
    inputs, before = random_inputs(module), convolutions(library)
    for found, wanted in zip(executable(*inputs), interpreter.run(module, inputs), strict=True):
        np.testing.assert_array_equal(found, wanted)
    # The fourth adds a residual.
    assert convolutions(library) == before + 3


def test_a_mistake_of_its_predicate_is_an_error_of_the_call(library: Path) -> None:
    module = branched()
    qdialect.PassManager.parse("fuse-qnn,qnn-outline-fused{target=npu}").run(module)
    executable = qdialect.compile(module, externals={"npu": library})
    with pytest.raises(qdialect.ExternalCallError, match=r"main_fused_conv2d_\d' failed .*: it returned 1$"):
        executable(*random_inputs(module))


def test_a_missing_symbol_is_named(tmp_path: Path) -> None:
    (tmp_path / "other.c").write_text("int npu_other(void);\nint npu_other(void) { return 0; }\n")
    other = built(tmp_path, source=tmp_path / "other.c")
    message = (
        r"needs 'npu_fused_conv2d' of target 'npu', which '.*libnpu.so' does not export; of npu_\* it exports npu_other"
    )
    with pytest.raises(qdialect.CompileError, match=message):
        qdialect.compile(with_externs(qdialect.parse(TWO)), externals={"npu": other})
    with pytest.raises(qdialect.LoadError, match=r"cannot load .*: no such file"):
        qdialect.compile(with_externs(qdialect.parse(TWO)), externals={"npu": tmp_path / "absent.so"})
    (tmp_path / "text.so").write_text("no library")
    with pytest.raises(qdialect.LoadError, match="must be a shared library of 64 bits"):
        qdialect.compile(with_externs(qdialect.parse(TWO)), externals={"npu": tmp_path / "text.so"})


def test_a_file_with_extern_functions_is_a_model(library: Path, tmp_path: Path) -> None:
    module = qdialect.parse(TWO)
    (tmp_path / "model.mlir").write_text(str(with_externs(module)))
    executable = qdialect.compile(tmp_path / "model.mlir", externals={"npu": library})
    assert run.main([str(tmp_path / "model.mlir"), f"--externals=npu={library}"]) == 0
    inputs = random_inputs(module)
    np.testing.assert_array_equal(executable(*inputs), interpreter.run(module, inputs)[0])


def test_files_leave_it_to_the_linker(library: Path, tmp_path: Path) -> None:
    module = qdialect.parse(TWO)
    inputs = random_inputs(module)
    (expected,) = interpreter.run(module, inputs)
    shutil.copy(library, tmp_path)
    for output, linked in (("model.so", "./model.so"), ("model.o", "./model.o")):
        emitted = ("--emit", output.removeprefix("model.").replace("o", "obj") if output == "model.o" else "so")
        compiled(tmp_path, str(with_externs(module)), *emitted, "--targets", "host,x86-64", output=output)
        ran(tool("cc"), "-std=c11", *STRICT, "-I.", EXAMPLES / "c" / "run_model.c", linked, "./libnpu.so", HERE,
            "-o", "run_model", folder=tmp_path)  # fmt: skip
        (found,) = arrays_of_c(tmp_path, inputs, qdialect.compile(module).outputs)
        np.testing.assert_array_equal(found, expected)


def test_a_library_that_fails_makes_the_network_fail(tmp_path: Path) -> None:
    (tmp_path / "failing.c").write_text(
        '#include "model.h"\n'
        "int npu_fused_conv2d(const qdialect_external *function, const void *const *inputs, void *const *outputs) {\n"
        "  return function && inputs && outputs ? 7 : 0;\n}\n"
    )
    module = with_externs(qdialect.parse(TWO))
    compiled(tmp_path, str(module))
    build_c(tmp_path, str(tmp_path / "failing.c"))
    (tmp_path / "input0.bin").write_bytes(bytes(144))
    said = ran("./run_model", "input0.bin", "output0.bin", folder=tmp_path, status=1)
    assert "a function of another library that the network calls has failed" in said


def test_a_saved_network_needs_its_library(library: Path, tmp_path: Path) -> None:
    module = qdialect.parse(TWO)
    executable = qdialect.compile(with_externs(module), externals={"npu": library})
    executable.save(tmp_path / "saved.so")
    with pytest.raises(qdialect.LoadError, match="undefined symbol: npu_fused_conv2d"):
        qdialect.load(tmp_path / "saved.so")
    inputs = random_inputs(module)
    ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
    loaded = qdialect.load(tmp_path / "saved.so")
    np.testing.assert_array_equal(loaded(*inputs), executable(*inputs))


def test_sanitizers_find_nothing(tmp_path: Path) -> None:
    module = qdialect.parse(TWO)
    checks = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g")
    built(tmp_path, *checks)
    compiled(tmp_path, str(with_externs(module)))
    build_c(tmp_path, *checks, "./libnpu.so")
    inputs = random_inputs(module)
    (found,) = arrays_of_c(tmp_path, inputs, qdialect.compile(module).outputs)
    np.testing.assert_array_equal(found, interpreter.run(module, inputs)[0])


def test_the_header_has_every_parameter(tmp_path: Path) -> None:
    compiled(tmp_path, str(with_externs(qdialect.parse(TWO))))
    (tmp_path / "print.c").write_text(
        '#include <stdio.h>\n#include "model.h"\n'
        "int main(void) {\n"
        '  printf("%g %d %g %g %d %d %s\\n", model_external_0.input_scale, (int)model_external_0.input_zero_point,\n'
        "         model_external_0.weight_scales[0], model_external_0.output_scale,\n"
        "         (int)model_external_0.output_zero_point, (int)model_external_0.bias[7],\n"
        "         model_external_0.stage0_requantize.rounding);\n  return 0;\n}\n"
    )
    ran(tool("cc"), "-std=c11", *STRICT, "print.c", "-o", "print", folder=tmp_path)
    assert ran("./print", folder=tmp_path) == "0.5 7 0.25 2 -3 0 fixed64_up\n"
