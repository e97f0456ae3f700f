"""The measured rows of docs/evidence: a sample is measured again; and `qdialect-reduce`."""

import stat
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pytest
from compiled_ops import can_be_joined, results_together
from onnx import ModelProto, TensorProto, helper

from qdialect import QDialectError
from qdialect.cli import reduce
from qdialect.frontends.model_files import ImportOptions, read_model
from qdialect.ir._mlir import ir
from qdialect.runtime import compile_module
from tools.evidence import tables
from tools.evidence.case import Case, InvalidCaseError, Key, Source, Variant, measure, outcome_of
from tools.evidence.outcomes import EQUAL, Outcome, Rank, compare, compare_all, is_worse, worst
from tools.evidence.sources import SOURCES
from tools.evidence.torch_cases import TorchCases

_OTHERS = {"onnx": 90, "tflite": 20, "torch": 400, "recorded": 1000}
"""Of so many rows that a framework has a part in, one is measured here."""
_JOINED = 16
"""So many small modules are compiled as one: most of the time for one of them is the same for each compilation."""

Module = tuple[Key, Case, ir.Module]


_STRATA: Mapping[str, Callable[[Key], object]] = {
    "onnx": lambda key: (key.operator, "QDQ" in key.form),
    "tflite": lambda key: (key.operator, key.types),
    "torch": lambda key: (key.operator, key.types == "float32"),
    "recorded": lambda key: key.operator,
}
"""Of the rows that are compiled whole and have this in common one is measured here, by chance, but always the same."""


def _strata(name: str, rows: Mapping[Key, Outcome]) -> list[Key]:
    compiled = [key for key, one in rows.items() if one.rank <= Rank.NEAR]
    # Of PyTorch floats and defaults: with arguments of others an operator may give what it is given.
    compiled.sort(key=lambda key: (key.types == "float32", key.origin.endswith("/0"), crc32(str(key).encode())))
    if name != "torch":
        compiled.sort(key=lambda key: crc32(str(key).encode()))
    return list({_STRATA[name](key): key for key in compiled}.values())


def _modules(source: Source, keys: Sequence[Key], folder: Path) -> Iterator[Module]:
    """Those that the front end takes and that can be compiled as one."""
    for key in keys:
        try:
            case = source.case(key)
            module = _read(case, folder)
        except (InvalidCaseError, QDialectError):
            continue
        if can_be_joined(module):
            yield key, case, module


def _read(case: Case, folder: Path) -> ir.Module:
    path = folder / f"model{case.suffix}"
    path.write_bytes(case.model)
    return read_model(path, ImportOptions(profile=case.profile, trust=True))


def _compared(case: Case, found: Sequence[Any]) -> Outcome:
    return min(compare_all(found, wanted, case.steps, case.limit) for wanted in (case.wanted, *case.alternatives))


def _outcomes(modules: Sequence[Module]) -> Mapping[Key, Outcome]:
    results = results_together([(module, case.inputs) for _, case, module in modules])
    return {key: _compared(case, found) for (key, case, _), found in zip(modules, results, strict=True)}


def _assert_not_worse(source: Source, known: Mapping[Key, Outcome], keys: Sequence[Key]) -> None:
    found = {key: measure(source, key) for key in keys}
    assert {str(key): (str(one), str(known[key])) for key, one in found.items() if is_worse(one, known[key])} == {}


@pytest.mark.parametrize("name", [name for name in SOURCES if name != "torch"])
def test_no_operator_became_worse(name: str, tmp_path: Path) -> None:
    """Some are compiled in one module; what is not as it was there is measured alone."""
    known, source = tables.read(name), SOURCES[name]()
    keys, found = _strata(name, known), dict[Key, Outcome]()
    modules = list(_modules(source, keys, tmp_path))
    for start in range(0, len(modules), _JOINED):
        found |= _outcomes(modules[start : start + _JOINED])
    again = [key for key in keys if key not in found or is_worse(found[key], known[key])]
    assert len(again) * 10 < len(keys), "most rows should be compiled together"
    _assert_not_worse(source, known, again)


def test_no_operator_of_pytorch_became_worse(tmp_path: Path) -> None:
    """Some are exported as one program; where that is not as it was, each of its calls is measured alone."""
    known, source = tables.read("torch"), TorchCases()
    keys, again = _strata("torch", known), list[Key]()
    for rank in (Rank.EQUAL, Rank.NEAR):
        same = [key for key in keys if known[key].rank == rank]
        for start in range(0, len(same), 2 * _JOINED):
            taken, case = source.joint_case(same[start : start + 2 * _JOINED])
            try:
                found = compile_module(_read(case, tmp_path))(*case.inputs)
                outcome = _compared(case, found if isinstance(found, tuple) else (found,))
            except QDialectError as error:
                outcome = Outcome(Rank.REFUSED, str(error))
            again += taken if outcome.rank > rank else []
    assert len(again) * 10 < len(keys), "most rows should be compiled together"
    _assert_not_worse(source, known, again)


@pytest.mark.parametrize("name", SOURCES)
def test_no_row_of_a_sample_became_worse(name: str) -> None:
    """Compiled in the ways that users can ask for, and rows that the framework has a part in."""
    known, source = tables.read(name), SOURCES[name]()
    rows = [key for key, one in sorted(known.items()) if Rank.NEAR < one.rank < Rank.INVALID]
    compiled = [key for key, one in sorted(known.items()) if one.rank <= Rank.NEAR]
    keys = rows[:: _OTHERS[name]] + compiled[:: len(compiled) // 8]
    assert keys, "nothing was measured; run 'make evidence'"
    _assert_not_worse(source, known, keys)


@pytest.mark.parametrize("name", SOURCES)
def test_no_row_is_wrong(name: str) -> None:
    assert {str(key): str(one) for key, one in tables.read(name).items() if one.is_fault} == {}


def test_rows_are_read_as_they_were_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "FOLDER", tmp_path / "evidence")
    rows = {
        Key("Add", "int8", "given", "add/test_add"): EQUAL,
        Key("Add", "int8 float32", "given", "add/other"): Outcome(Rank.REFUSED, "'t' has 1 unsupported: operand"),
    }
    assert tables.read("onnx") == {}
    tables.write("onnx", rows)
    assert tables.read("onnx") == rows


F32, I8 = np.float32, np.int8


@pytest.mark.parametrize(
    ("found", "wanted", "steps", "outcome"),
    [
        (np.zeros(2, I8), np.zeros(2, I8), 0, EQUAL),
        (np.zeros(2, I8), np.ones(2, I8), 0, Outcome(Rank.WRONG, "2 of 2 elements differ by at most 1")),
        (np.zeros(2, I8), np.ones(2, I8), 1, Outcome(Rank.NEAR, "a step")),
        (np.full(2, 127, I8), np.full(2, -128, I8), 1, Outcome(Rank.WRONG, "2 of 2 elements differ by at most 255")),
        (np.zeros(2, I8), np.zeros(2, F32), 9, Outcome(Rank.WRONG, "int8 of [2], but expected float32 of [2]")),
        (np.zeros(2, I8), np.zeros(3, I8), 9, Outcome(Rank.WRONG, "int8 of [2], but expected int8 of [3]")),
        (np.array([True]), np.array([False]), 1, Outcome(Rank.WRONG, "1 of 1 elements differ")),
        (np.array([np.nan, 1], F32), np.array([np.nan, 1], F32), 0, EQUAL),
        (np.array([np.nan], F32), np.array([1], F32), 0, Outcome(Rank.WRONG, "other infinities or NaNs")),
        (np.array([np.inf], F32), np.array([-np.inf], F32), 0, Outcome(Rank.WRONG, "other infinities or NaNs")),
        (np.array([-0.0], F32), np.array([0.0], F32), 0, Outcome(Rank.NEAR, "signs of zeros")),
        (np.array([1 + 1e-6, 1], F32), np.ones(2, F32), 0, Outcome(Rank.NEAR, "1e-6")),
        (np.array([1.001, 1], F32), np.ones(2, F32), 0, Outcome(Rank.WRONG, "0.001 of the range away")),
        (np.array([1 + 1j]), np.array([1 + 2j]), 0, Outcome(Rank.WRONG, "0.5 of the range away")),
    ],
)
def test_results_are_compared(found: Any, wanted: Any, steps: int, outcome: Outcome) -> None:
    assert compare(found, wanted, steps) == outcome


def test_every_output_is_compared() -> None:
    one = np.ones(3, I8)
    assert compare_all([one, one], [one, one], 0) == EQUAL
    assert compare_all([one, one], [one, one + I8(1)], 0).rank == Rank.WRONG
    assert compare_all([one], [one, one], 0) == Outcome(Rank.WRONG, "1 outputs, but expected 2")
    assert worst([EQUAL, Outcome(Rank.NEAR, "a step"), EQUAL]) == Outcome(Rank.NEAR, "a step")


@pytest.mark.parametrize(
    ("found", "known", "worse"),
    [
        (Rank.EQUAL, Rank.NEAR, False),
        (Rank.NEAR, Rank.EQUAL, True),
        (Rank.FRAMEWORK, Rank.NEAR, True),
        (Rank.REFUSED, Rank.FRAMEWORK, True),
        (Rank.WRONG, Rank.REFUSED, True),
        (Rank.INVALID, Rank.EQUAL, False),
        (Rank.EQUAL, Rank.INVALID, False),
        (Rank.WRONG, Rank.INVALID, True),
    ],
)
def test_a_row_may_only_get_better(found: Rank, known: Rank, worse: bool) -> None:
    assert is_worse(Outcome(found), Outcome(known)) is worse


_MODEL = b"""
  func.func @main(%x: tensor<8xi8>) -> tensor<8xi8> {
    %y = "qnn.add"(%x, %x) {lhs_scale = 0.5 : f64, lhs_zero_point = 0 : i64, rhs_scale = 0.5 : f64,
      rhs_zero_point = 0 : i64, output_scale = 0.5 : f64, output_zero_point = 0 : i64,
      output_min = -128 : i64, output_max = 127 : i64}
      : (tensor<8xi8>, tensor<8xi8>) -> tensor<8xi8>
    func.return %y : tensor<8xi8>
  }"""
_X = np.arange(8, dtype=I8)


@pytest.mark.parametrize(
    ("case", "rank"),
    [
        (Case(".mlir", _MODEL, (_X,), (_X + _X,)), Rank.EQUAL),
        (Case(".mlir", _MODEL, (_X,), (_X + I8(2),)), Rank.WRONG),
        (Case(".mlir", _MODEL, (_X[:7],), (_X,)), Rank.REFUSED),
        (Case(".mlir", b"nothing", (_X,), (_X,)), Rank.REFUSED),
    ],
)
def test_a_case_is_compiled_and_compared(case: Case, rank: Rank) -> None:
    assert outcome_of(case, [Variant(), Variant("generic", threads=2), Variant(is_saved=True)]).rank == rank


# ``qdialect-reduce``: models get smaller while a command finds in them what it looks for.

MODULE = """
func.func @main(%x: tensor<4xi8>, %unused: tensor<9xi8>) -> (tensor<4xi8>, tensor<4xi8>) {
  %0 = "qnn.clip"(%x) {min = -50 : i64, max = 90 : i64} : (tensor<4xi8>) -> tensor<4xi8>
  %1 = "qnn.clip"(%0) {min = -5 : i64, max = 9 : i64} : (tensor<4xi8>) -> tensor<4xi8>
  %2 = "qnn.clip"(%1) {min = -4 : i64, max = 8 : i64} : (tensor<4xi8>) -> tensor<4xi8>
  return %2, %0 : tensor<4xi8>, tensor<4xi8>
}
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """Exits with 0 for a file with the bytes ``max = 9`` or ``Sigmoid``."""
    path = tmp_path / "is_interesting.py"
    path.write_text(
        f"#!{sys.executable}\nimport sys\ntext = open(sys.argv[1], 'rb').read()\n"
        "sys.exit(not (b'max = 9 :' in text or b'Sigmoid' in text))\n"
    )
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def test_a_module_is_cut_at_both_ends(script: Path, tmp_path: Path) -> None:
    model, small = tmp_path / "model.mlir", tmp_path / "small.mlir"
    model.write_text(MODULE)
    assert reduce.main([str(model), "--test", str(script), "-o", str(small)]) == 0
    text = small.read_text()
    assert text.count("qnn.clip") == 1
    assert "max = 9 :" in text
    assert "func.func @main(%arg0: tensor<4xi8>) -> tensor<4xi8>" in text


def test_an_onnx_model_is_cut_at_both_ends(script: Path, tmp_path: Path) -> None:
    kinds = ("Relu", "Neg", "Sigmoid", "Abs", "Exp")
    nodes = [helper.make_node(kind, [f"v{k}"], [f"v{k + 1}"]) for k, kind in enumerate(kinds)]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 3]) for name in ("v0", "v5")]
    model, small = tmp_path / "model.onnx", tmp_path / "small.onnx"
    model.write_bytes(helper.make_model(helper.make_graph(nodes, "chain", ends[:1], ends[1:])).SerializeToString())
    assert reduce.main([str(model), "--test", str(script), "-o", str(small)]) == 0
    graph = ModelProto.FromString(small.read_bytes()).graph
    assert [node.op_type for node in graph.node] == ["Sigmoid"]
    assert [one.name for one in graph.input] == ["v2"]
    assert [one.name for one in graph.output] == ["v3"]


@pytest.mark.parametrize(
    ("name", "test", "message"),
    [
        ("model.mlir", "false", "'false' must exit with 0 for"),
        ("model.mlir", "no-such-command --option", "cannot be run: No such file or directory"),
        ("model.tflite", "true", "must be a .mlir or .onnx file"),
        ("absent.mlir", "true", "No such file or directory"),
    ],
)
def test_models_that_cannot_be_reduced(
    name: str, test: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "model.mlir").write_text(MODULE)
    output = tmp_path / "small"
    assert reduce.main([str(tmp_path / name), "--test", test, "-o", str(output)]) == 1
    assert message in capsys.readouterr().err
    assert not output.exists()
