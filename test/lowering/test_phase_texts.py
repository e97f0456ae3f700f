"""The text of every phase is a whole program: printed, parsed and run it gives the bits of the reference."""

import contextlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from drawn_networks import CONVOLUTION, DIVISIBLE, NETWORKS

import qdialect
from qdialect.cli import opt, run
from qdialect.ir._mlir import ir
from qdialect.ir.context import bytecode, parse
from qdialect.ir.module_text import Printing
from qdialect.lowering.ir.lowered import CONSTANTS, PROGRAM, phase_of, read
from qdialect.lowering.pipeline.phases import Phase, compile_to, lower
from qdialect.reference import interpreter
from qdialect.runtime import compile_module
from qdialect.runtime.comparison import random_inputs
from qdialect.support.diagnostics import CompileError, ParseError, QDialectError
from qdialect.targets import GENERIC, TARGETS

PROGRAMS = [phase for phase in Phase if phase.number >= Phase.LINALG.number]


def assert_same_bits(source: str | bytes, network: ir.Module) -> None:
    """The module of `source` has the bits of the reference of `network`."""
    executable = compile_module(parse(source), target="generic")
    inputs = random_inputs(executable.inputs, 1)
    found = executable(*inputs)
    outputs = found if isinstance(found, tuple) else (found,)
    for wanted, got in zip(interpreter.run(network, inputs), outputs, strict=True):
        np.testing.assert_array_equal(wanted, got, strict=True)


@pytest.mark.parametrize("phase", Phase)
@pytest.mark.parametrize("name", NETWORKS)
def test_the_text_of_a_phase_is_the_network(name: str, phase: Phase) -> None:
    network = parse(NETWORKS[name])
    text = Printing(enable_debug_info=True).text(compile_to(network, phase, GENERIC))
    assert_same_bits(text, network)


@pytest.mark.parametrize("phase", PROGRAMS)
def test_bytecode_of_a_phase_is_the_network(phase: Phase) -> None:
    network = parse(CONVOLUTION)
    assert_same_bits(bytecode(compile_to(network, phase, GENERIC)), network)


@pytest.mark.parametrize("phase", [Phase.VECTOR, Phase.X86, Phase.LLVM])
def test_a_divided_network_is_run_from_its_text(phase: Phase) -> None:
    network = parse(DIVISIBLE)
    text = Printing().text(compile_to(network, phase, GENERIC, 2))
    assert read(parse(text)).threads == 2
    assert_same_bits(text, network)


def test_a_network_is_divided_from_its_vector_text() -> None:
    network = parse(DIVISIBLE)
    whole = parse(Printing().text(compile_to(network, Phase.VECTOR, GENERIC)))
    divided = lower(whole, GENERIC, threads=2)
    assert divided.threads == 2
    assert divided.arena_bytes == lower(network, GENERIC, threads=2).arena_bytes


@pytest.mark.parametrize("phase", PROGRAMS)
def test_a_real_network_is_run_from_the_text_of_a_phase(require_model: Callable[[str], Path], phase: Phase) -> None:
    network = qdialect.read_model(require_model("tflite/kws_ref_model.tflite"))
    assert_same_bits(Printing().text(compile_to(network, phase, GENERIC)), network)


def test_the_description_of_a_program_is_read_back() -> None:
    network = parse(CONVOLUTION)
    before = lower(network, GENERIC, Phase.LINALG)
    after = read(parse(Printing().text(before.module)))
    np.testing.assert_array_equal(before.constants, after.constants)
    assert after.constants.size
    for name in ("inputs", "outputs", "calls", "buffers", "arena_bytes", "live_bytes", "weights_bytes", "kernels"):
        assert getattr(before, name) == getattr(after, name), name


def test_the_constants_are_a_resource_at_the_end_of_the_text() -> None:
    text = Printing().text(compile_to(parse(CONVOLUTION), Phase.LINALG, GENERIC))
    assert "qnn.constants = dense_resource<constants> : tensor<" in text
    assert 'constants: "0x40000000' in text.partition("{-#")[2]
    elided = Printing(large_resource_limit=20).text(parse(text))
    with pytest.raises(CompileError, match=r"qnn.constants must come with its data, but dense_resource<constants>"):
        compile_module(parse(elided), target="generic")


NEEDS_ELEMENTS = """func.func @main(%x: tensor<3xi8>) -> tensor<3xi8> {{
  %c = {constant}
  %y = "qnn.add"(%x, %c) {{
    lhs_scale = 0.5 : f64, lhs_zero_point = 0 : i64, rhs_scale = 0.5 : f64, rhs_zero_point = 0 : i64,
    output_scale = 0.5 : f64, output_zero_point = 0 : i64, output_min = -128 : i64, output_max = 127 : i64
  }} : (tensor<3xi8>, tensor<3xi8>) -> tensor<3xi8>
  return %y : tensor<3xi8>
}}
{{-# dialect_resources: {{ builtin: {{ short: "0x400000000102" }} }} #-}}
"""
ELIDED = {
    '"qnn.constant"() {value = dense_resource<blob> : tensor<3xi8>} : () -> tensor<3xi8>': (
        "'qnn.constant' op value must have its elements, but dense_resource 'blob' has no data"
    ),
    "arith.constant dense_resource<blob> : tensor<3xi8>": (
        "'arith.constant' op value must have its elements, but dense_resource 'blob' has no data"
    ),
    '"qnn.constant"() {value = dense_resource<short> : tensor<3xi8>} : () -> tensor<3xi8>': (
        "'qnn.constant' op value must have its elements, "
        "but the data of dense_resource 'short' does not fit tensor<3xi8>"
    ),
}


@pytest.mark.parametrize("constant", ELIDED)
def test_a_constant_without_elements_is_printed_and_not_computed(constant: str) -> None:
    module = parse(NEEDS_ELEMENTS.format(constant=constant))
    assert "dense_resource<" in str(module)
    assert "dense_resource<" in str(compile_to(module, Phase.FUSED, GENERIC))
    for compute in (
        lambda: compile_to(module, Phase.LINALG, GENERIC),
        lambda: compile_module(module, target="generic"),
        lambda: interpreter.run(module, [np.zeros(3, np.int8)]),
    ):
        with pytest.raises(CompileError) as caught:
            compute()
        assert caught.value.render() == f"-:2:8: error: {ELIDED[constant]}"


def test_a_resource_of_a_text_is_a_constant() -> None:
    text = """
    func.func @main(%x: tensor<4xi8>) -> (tensor<4xi8>, tensor<2xf32>, tensor<4xi8>) {
      %0 = "qnn.constant"() {value = dense_resource<w> : tensor<4xi8>} : () -> tensor<4xi8>
      %1 = arith.constant dense_resource<f> : tensor<2xf32>
      %2 = "qnn.lut"(%x) {
        input_scale = 0.5 : f64, input_zero_point = 0 : i64, output_scale = 0.5 : f64, output_zero_point = 0 : i64,
        table = dense_resource<t> : tensor<256xi8>
      } : (tensor<4xi8>) -> tensor<4xi8>
      return %0, %1, %2 : tensor<4xi8>, tensor<2xf32>, tensor<4xi8>
    }
    {-# dialect_resources: { builtin: {
      w: "0x4000000001020304", f: "0x400000000000803F00000040", t: "0x40000000TABLE"
    } } #-}
    """.replace("TABLE", bytes(reversed(range(256))).hex())
    module = parse(text)
    assert "dense_resource" not in str(module)
    quantized, floats, looked_up = interpreter.run(module, [np.array([0, 1, -1, -128], np.int8)])
    assert quantized.tolist() == [1, 2, 3, 4]
    assert floats.tolist() == [1.0, 2.0]
    assert looked_up.tolist() == [-1, -2, 0, 127]


@pytest.mark.parametrize("phase", PROGRAMS)
def test_functions_arguments_and_locations_keep_the_nodes_names(phase: Phase) -> None:
    module = compile_to(parse(CONVOLUTION), phase, GENERIC)
    text = Printing(enable_debug_info=True, use_local_scope=True).text(module)
    (kernel,) = [line for line in text.splitlines() if "func" in line and "@kernel_2_activation(" in line]
    assert 'loc("data")' in kernel
    (call,) = [line for line in text.splitlines() if "call @kernel_2_activation(" in line]
    for node in ("net/conv;1", "rescale", "activation"):
        assert f'"{node}"' in call
    named = Printing(use_name_loc_as_prefix=True).text(module)
    assert "@kernel_2_activation(%data: " in named
    assert "@main(%in0: " in named


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"target": "avx512vnni"}, "module was lowered for target 'generic', but got 'avx512vnni'"),
        ({"threads": 3}, "module at phase x86 runs on 1 threads, but got 3"),
        ({"clocked": True}, "clocked code must be lowered from phase qnn, but module is at phase x86"),
    ],
)
def test_a_program_is_compiled_for_what_it_was_lowered_for(changes: dict[str, object], message: str) -> None:
    module = compile_to(parse(CONVOLUTION), Phase.X86, GENERIC)
    target = TARGETS[str(changes.get("target", "generic"))]
    with pytest.raises(CompileError, match=message):
        lower(module, target, threads=int(str(changes.get("threads", 1))), clocked="clocked" in changes)


def test_a_program_does_not_go_back() -> None:
    module = compile_to(parse(CONVOLUTION), Phase.X86, GENERIC)
    assert phase_of(module) is Phase.X86
    with pytest.raises(CompileError, match="module is at phase x86, and cannot be lowered to phase linalg"):
        lower(module, GENERIC, Phase.LINALG)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('qnn.phase = "llvm"', 'qnn.phase = "asm"', "qnn.phase must be one of qnn, fused, .*, but got 'asm'"),
        ('qnn.phase = "llvm"', "qnn.phase = 7 : i64", "qnn.phase must be a string, but got 7"),
        ("arena_bytes = ", "arena = ", "qnn.program is damaged: KeyError: 'arena_bytes'"),
        ("arena_bytes = ", "arena_bytes = -", "qnn.program is damaged: ValueError: .* at least 0, but got -"),
        ("inputs = [", "inputs = [1, ", "qnn.program is damaged: "),
        ("qnn.program = {", "qnn.program = unit, qnn.x = {", "qnn.program is damaged: "),
        (
            "qnn.program = {",
            "qnn.other = {",
            "a module at phase llvm must describe the arguments of main in qnn.program",
        ),
        ("@main(", "@main(%more: !llvm.ptr, ", "function 'main' must take 4 arguments, but takes 5"),
        ("llvm.func @main(", "llvm.func @start(", "module must have a function 'main' with a body to be run"),
    ],
)
def test_a_program_that_contradicts_itself_is_refused(old: str, new: str, message: str) -> None:
    text = Printing().text(compile_to(parse(NETWORKS["softmax"]), Phase.LLVM, GENERIC))
    changed = text.replace(old, new, 1)
    assert changed != text
    with pytest.raises(QDialectError, match=message):
        compile_module(parse(changed), target="generic")


def test_an_argument_larger_than_its_array_is_refused() -> None:
    text = Printing().text(compile_to(parse(NETWORKS["softmax"]), Phase.VECTOR, GENERIC))
    with pytest.raises(CompileError, match=r"argument 0 of 'main' must have at most 63 bytes, but has 6300"):
        compile_module(parse(text.replace("memref<63xi8>", "memref<6300xi8>")), target="generic")


def test_damaged_bytecode_is_refused(tmp_path: Path) -> None:
    whole = bytecode(parse(CONVOLUTION))
    path = tmp_path / "model.mlirbc"
    for size in (4, len(whole) // 3, len(whole) - 1):
        path.write_bytes(whole[:size])
        with pytest.raises(ParseError, match="MLIR bytecode is damaged"):
            parse(path)


@pytest.mark.parametrize("seed", range(12))
def test_bytecode_with_other_bytes_is_a_module_or_an_error(seed: int) -> None:
    """MLIR's reader corrupts its memory for some of these: it must be another process's."""
    content = bytearray(bytecode(parse(CONVOLUTION)))
    rng = np.random.default_rng(seed)
    for _ in range(4):
        content[int(rng.integers(4, len(content)))] = int(rng.integers(256))
    with contextlib.suppress(ParseError):
        assert parse(bytes(content)).operation.verify()


def test_the_commands_take_every_phase(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, lowered, binary = tmp_path / "net.mlir", tmp_path / "vector.mlir", tmp_path / "net.mlirbc"
    path.write_text(CONVOLUTION)
    assert opt.main([str(path), "--compile-to=vector", "--target=generic", "-o", str(lowered)]) == 0
    assert opt.main([str(lowered), "--compile-to=x86", "--emit-bytecode", "-o", str(binary)]) == 0
    tables: list[str] = []
    for model in (path, lowered, binary):
        capsys.readouterr()
        assert run.main([str(model), "--target", "generic"]) == 0
        tables.append(capsys.readouterr().out.partition("\n\n")[2])
    assert tables[0] == tables[1] == tables[2]
    assert "scores" in tables[0]
    assert run.main([str(lowered), "--reference"]) == 1
    assert "must be at phase qnn or fused to be run by the reference, but is at vector" in capsys.readouterr().err


def test_a_module_without_constants_is_a_program() -> None:
    relay = parse("func.func @main(%x: tensor<4xi8>) -> tensor<4xi8> { return %x : tensor<4xi8> }")
    text = Printing().text(compile_to(relay, Phase.LINALG, GENERIC))
    assert CONSTANTS not in text
    assert PROGRAM in text
    compiled = compile_module(parse(text), target="generic")
    np.testing.assert_array_equal(compiled(np.arange(4, dtype=np.int8)), np.arange(4))
