"""Texts of errors, registries, and numbers of jobs."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from drawn_networks import NETWORKS

import qdialect
from qdialect.cli import compile as compile_command
from qdialect.dialect import ClipOp
from qdialect.frontends.onnx.operators import registry as onnx_operators
from qdialect.frontends.tflite.operators import registry as tflite_operators
from qdialect.frontends.torch.operators import registry as torch_operators
from qdialect.frontends.tosa import import_tosa
from qdialect.frontends.tosa.operators.conversion import converts
from qdialect.ir._mlir import ir
from qdialect.ir.context import make_context, parse, several_threads
from qdialect.lowering.ir import phase_pass
from qdialect.lowering.pipeline.phases import Phase, compile_to
from qdialect.lowering.qnn_to_linalg.graph.graph import lowers
from qdialect.reference.evaluators import EVALUATORS, evaluates
from qdialect.support import limits
from qdialect.support.diagnostics import CompileError, RegistrationError
from qdialect.support.registry import Registry
from qdialect.targets import TARGETS

TOSA = """
func.func @main(%x: tensor<4xf16>, %y: tensor<4xi32>) -> (tensor<4xf16>, tensor<4xi32>) {
  %0 = tosa.exp %x : (tensor<4xf16>) -> tensor<4xf16>
  %1 = tosa.custom %y {domain_name = "a", implementation_attrs = "", operator_name = "b"}
    : (tensor<4xi32>) -> tensor<4xi32>
  return %0, %1 : tensor<4xf16>, tensor<4xi32>
}
"""


def test_an_import_names_every_op_and_its_line() -> None:
    with pytest.raises(qdialect.ImportModelError) as caught:
        import_tosa(TOSA)
    first, exponential, custom = str(caught.value).splitlines()
    assert first == "'model.mlir' has 2 unsupported operations"
    assert exponential.startswith("  -:3:8: tosa.exp %0: must have operands and results of")
    assert custom == "  -:4:8: tosa.custom %1: has no counterpart in qnn"
    assert "-:4:8: note: tosa.custom %1: has no counterpart in qnn" in caught.value.render()


_LONG = "x" * 20_000
_BATCH: dict[str, Any] = {"batch": list(range(9999))}
_IDENTITY = "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{\n{body} return %x : tensor<4xf32>\n}}"


_TOLD: list[tuple[Callable[[qdialect.Executable], object], str]] = [
    (lambda _: qdialect.compile(_IDENTITY * 50), "got a text of 4500 characters; `qdialect.parse(text)` makes"),
    (lambda _: qdialect.read_model(f"module {{ {_LONG} }}"), "`qdialect.parse(text)` makes"),
    (lambda _: qdialect.compile(_LONG), "must be a model of kind .mlir"),
    (lambda _: qdialect.compile(f"{_LONG}.onnx"), "cannot read"),
    (lambda _: qdialect.load(_LONG), "no such file"),
    (lambda _: qdialect.load(_IDENTITY), "no such file"),
    (lambda _: qdialect.compile("a.mlir", profile=_LONG), "profile"),
    (lambda _: qdialect.compile("a.mlir", dims={f"d{number}": 3 for number in range(9999)}), "dims"),
    (lambda _: qdialect.compile("a.mlir", **_BATCH), "batch must be an integer"),
    (lambda found: found({_LONG: 0}), "its inputs are arg0"),
    (lambda found: found([[0.0] * 9999]), "arg0"),
    (lambda found: found.inputs[_LONG], "its inputs are arg0"),
    (lambda found: found.save(f"{_LONG}.so"), "File name too long"),
    (lambda _: qdialect.parse(_IDENTITY.format(body=f'"{_LONG}.a"() : () -> ()\n')), "unregistered dialect"),
]


@pytest.mark.parametrize(("call", "way_out"), _TOLD)
def test_arguments_of_a_user_are_not_told_without_end(
    call: Callable[[qdialect.Executable], object], way_out: str, identity: qdialect.Executable
) -> None:
    with pytest.raises(qdialect.QDialectError) as caught:
        call(identity)
    assert way_out in str(caught.value)
    for text in (str(caught.value), caught.value.message, caught.value.render()):
        assert len(text) < 3000


@pytest.fixture(scope="module")
def identity() -> qdialect.Executable:
    return qdialect.compile(_IDENTITY.format(body="").encode())


def test_a_pass_names_every_op_and_its_line() -> None:
    module = qdialect.parse("""
      func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
        %0 = math.sqrt %x : tensor<4xf32>
        %1 = math.log1p %0 : tensor<4xf32>
        return %1 : tensor<4xf32>
      }""")
    with pytest.raises(qdialect.PassError) as caught:
        qdialect.PassManager.parse("qnn-to-tosa").run(module)
    assert caught.value.render().splitlines()[1:] == [
        "-:3:14: note: 'math.sqrt' op has no counterpart in tosa",
        "-:4:14: note: 'math.log1p' op has no counterpart in tosa",
    ]


def test_a_compilation_names_every_op_and_its_line() -> None:
    module = qdialect.parse("""
      func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
        %0 = math.sinh %x : tensor<4xf32>
        %1 = math.cosh %0 : tensor<4xf32>
        return %1 : tensor<4xf32>
      }""")
    with pytest.raises(qdialect.CompileError) as caught:
        qdialect.compile(module)
    assert str(caught.value).splitlines()[1:] == [
        "  -:3:14: 'math.sinh' op has no lowering",
        "  -:4:14: 'math.cosh' op has no lowering",
    ]


# No second definition takes a name that another has: neither wins silently.

# Each fills a table while it is imported.
for package in (
    *("frontends.onnx", "frontends.tflite", "frontends.torch"),
    *("lowering.qnn_to_linalg.conversions", "frontends.tosa"),
):
    import_module(f"qdialect.{package}")
import_module("qdialect.reference.interpreter")


def first(*_: object) -> None: ...


def second(*_: object) -> None: ...


def test_an_entry_is_found_under_each_of_its_names() -> None:
    registry = Registry[Callable[..., None]]("handler")
    registry.add(["a", "b"], first)
    registry.add(["c"], second)
    assert dict(registry) == {"a": first, "b": first, "c": second}
    assert len(registry) == 3


def test_a_second_definition_is_refused_and_changes_nothing() -> None:
    registry = Registry[Callable[..., None]]("handler")
    registry.add(["a"], first)
    with pytest.raises(
        RegistrationError, match=r"handler of 'a' must be registered once, but got \S+first and \S+second"
    ):
        registry.add(["b", "a"], second)
    assert dict(registry) == {"a": first}


@pytest.mark.parametrize(
    "register",
    [
        evaluates(ClipOp),
        lowers(ClipOp),
        converts("tosa.add"),
        onnx_operators.imports("Add"),
        tflite_operators.imports("ADD"),
        torch_operators.imports("add.Tensor"),
    ],
    ids=["evaluator", "lowering", "tosa", "onnx", "tflite", "torch"],
)
def test_every_table_of_the_project_refuses_a_second_definition(register: Callable[[object], object]) -> None:

    with pytest.raises(RegistrationError, match="must be registered once"):
        register(second)
    assert EVALUATORS["qnn.clip"] is not second


# Compiling on several threads: the same code for every number of them.

needs_two_cpus = pytest.mark.skipif(limits.available_jobs() < 2, reason="one CPU compiles on one thread")
UNKNOWN_REGION = """func.func @f{number}() {{
  "other.op"() ({{
    "other.op"() : () -> ()
  }}) : () -> ()
  return
}}
"""


def llvm_text(network: str, count: int) -> str:
    with limits.using_jobs(count):
        return str(compile_to(parse(network, make_context()), Phase.LLVM, TARGETS["avx512vnni"]))


@needs_two_cpus
@pytest.mark.parametrize("name", sorted(NETWORKS)[:2])
def test_code_does_not_depend_on_jobs(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    counts: list[int] = []

    def counted(context: ir.Context, count: int) -> AbstractContextManager[None]:
        counts.append(count)
        return several_threads(context, count)

    monkeypatch.setattr(phase_pass, "several_threads", counted)
    monkeypatch.setattr(phase_pass, "FUNCTIONS_PER_THREAD", 1)
    assert llvm_text(NETWORKS[name], 2) == llvm_text(NETWORKS[name], 1)
    assert set(counts) == {1, 2}


@needs_two_cpus
def test_failures_are_in_the_order_of_the_functions() -> None:
    text = "".join(UNKNOWN_REGION.format(number=number) for number in range(4 * phase_pass.FUNCTIONS_PER_THREAD))
    found: list[list[str]] = []
    for count in (1, 2):
        context = make_context()
        context.allow_unregistered_dialects = True
        module = parse(text, context)
        phase_pass.load_kernel_dialects(module)
        with limits.using_jobs(count), pytest.raises(CompileError) as caught:
            phase_pass.run_passes(module, "builtin.module(func.func(ownership-based-buffer-deallocation))", "pass")
        found.append([str(diagnostic) for diagnostic in caught.value.diagnostics])
    assert len(found[0]) == 4 * phase_pass.FUNCTIONS_PER_THREAD
    assert found[0] == found[1]


@pytest.mark.parametrize("wrong", [0, -1, True, "2", 1.0])
def test_jobs_must_be_a_count(wrong: int) -> None:
    with pytest.raises(CompileError, match=f"jobs must be an integer of at least 1, but got {wrong!r}"):
        qdialect.compile("model.tflite", jobs=wrong)


def test_commands_take_jobs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    counts: list[int] = []

    def compiled(options: object) -> int:
        counts.append(limits.active_jobs())
        return 0

    monkeypatch.setattr(compile_command, "_compile", compiled)
    assert compile_command.main([str(tmp_path / "m.mlir"), "-o", "m.so", "-j", "1"]) == 0
    assert counts == [1]
    with pytest.raises(SystemExit):
        compile_command.main([str(tmp_path / "m.mlir"), "-o", "m.so", "--jobs", "0"])
    assert "argument --jobs/-j: must be an integer of at least 1, but got 0" in capsys.readouterr().err
