"""ONNX models that are compiled in parts: the same bits as ONNX Runtime on the whole, wherever nodes stand."""

import os
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import external_data_helper, parser
from onnx_graphs import Array, ModelBuilder, assert_same, of_onnx_runtime

import qdialect
from qdialect import targets
from qdialect.dialect import ConstraintError
from qdialect.driver.fallback import with_note
from qdialect.frontends.planning.emitter import Emitter, Value
from qdialect.support.diagnostics import (
    CompileError,
    ImportModelError,
    InputError,
    PassError,
    QDialectError,
    VerificationError,
)

ORT: Any = import_module("onnxruntime")
X, Y = (0.04, 117), (0.05, 131)
SHAPE = ("n", 8, 12, 12)


class Net(ModelBuilder):
    """Tensors are f32 values between quantizations, as quantizers leave them."""

    def image(self, name: str = "x") -> str:
        return self.requantized(self.input(name, SHAPE))

    def requantized(self, value: str) -> str:
        return self.dequantize(self.quantize(value, X), X)

    def convolution(self, value: str, seed: int = 0) -> str:
        drawn = np.random.default_rng(seed).integers(-127, 128, (8, 8, 3, 3)).astype(np.int8)
        return self.requantized(self.node("Conv", value, self.weight(drawn, 0.012), pads=[1, 1, 1, 1]))

    def unsupported(self, value: str) -> str:
        return self.requantized(self.node("Hardmax", value))

    def sum(self, lhs: str, rhs: str) -> str:
        return self.requantized(self.node("Add", lhs, rhs))


def middle() -> bytes:
    b = Net()
    return b.finish(b.convolution(b.unsupported(b.convolution(b.image()))), dtype=np.float32)


def beginning() -> bytes:
    b = Net()
    return b.finish(b.convolution(b.requantized(b.node("Hardmax", b.input("x", SHAPE)))), dtype=np.float32)


def end() -> bytes:
    b = Net()
    return b.finish(b.node("Hardmax", b.convolution(b.image())), dtype=np.float32)


def diamond() -> bytes:
    b = Net()
    top = b.convolution(b.image())
    return b.finish(b.sum(b.convolution(top, 1), b.unsupported(top)), dtype=np.float32)


def two_branches() -> bytes:
    b = Net()
    image = b.image()
    left, right = b.unsupported(b.convolution(image, 1)), b.convolution(b.unsupported(image), 2)
    return b.finish(b.convolution(b.sum(left, right)), dtype=np.float32)


def many_outputs() -> bytes:
    """One from each side, one in the middle, one quantized, and one twice used: on both sides."""
    b = Net()
    first = b.convolution(b.image())
    quantized = b.quantize(b.node("Relu", first), Y)
    second = b.unsupported(b.dequantize(quantized, Y))
    third = b.convolution(b.sum(first, second))
    b.node("Identity", quantized, output="quantized")
    for name, value in (("first", first), ("second", second), ("third", third)):
        b.node("Identity", value, output=name)
    return b.finish("first", "second", "quantized", "third", dtype=[np.float32, np.float32, np.uint8, np.float32])


def behind_a_custom_domain() -> bytes:
    """What a node of another domain gives has no schema here; ONNX Runtime knows its type."""
    b = Net()
    mask = b.constant(np.random.default_rng(3).integers(0, 2, (1, 8, 12, 12)).astype(np.int32))
    pool: dict[str, Any] = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
    inner = b.node("com.microsoft.MaxpoolWithMask", b.convolution(b.image()), mask, **pool)
    return b.finish(b.convolution(b.requantized(inner)), dtype=np.float32)


def float_that_waits() -> bytes:
    """A convolution that nothing quantizes but a node behind the framework's."""
    b = Net()
    top = b.convolution(b.image())
    weights = b.weight(np.ones((8, 8, 1, 1), np.int8), 0.01)
    return b.finish(b.sum(b.node("Conv", top, weights), b.unsupported(top)), dtype=np.float32)


def captured() -> bytes:
    """A Loop whose body reads a tensor that is compiled."""
    b = Net()
    inner = b.convolution(b.image())
    body = parser.parse_graph(f"""
      body (int64 count, bool go_on, float[n, 8, 12, 12] before) => (bool go, float[n, 8, 12, 12] after)
      {{ go = Identity (go_on) after = Add ({inner}, before) }}""")
    looped = b.node("Loop", b.constant(np.array(2)), b.constant(np.array(True)), inner, body=body)
    return b.finish(b.convolution(b.requantized(looped)), dtype=np.float32)


def late(depth: int) -> bytes:
    """An If whose branches read what a later node of the file gives, `depth` graphs further in."""
    b = Net()
    inner = b.convolution(b.image())
    before, b.nodes = b.nodes, []
    flag = b.node("Greater", b.input("flag", ()), b.constant(0.0), output="is_taken")
    graphs: dict[str, onnx.GraphProto] = {}
    for name, kind in (("then_branch", "Relu"), ("else_branch", "Neg")):
        text = f"g () => (float[] r) {{ r = {kind} ({inner}) }}"
        for _ in range(1, depth):
            text = f"g () => (float[] r) {{ r = If ({flag}) <then_branch = {text}, else_branch = {text}> }}"
        graphs[name] = parser.parse_graph(text)
    chosen = b.node("If", flag, **graphs, output="chosen")
    b.nodes += before
    return b.finish(b.convolution(b.requantized(chosen)), dtype=np.float32)


NETWORKS: list[Callable[[], bytes]] = [
    middle,
    beginning,
    end,
    diamond,
    two_branches,
    many_outputs,
    behind_a_custom_domain,
    captured,
]


def saved(folder: Path, content: bytes) -> Path:
    path = folder / "model.onnx"
    path.write_bytes(content)
    return path


def image(batch: int = 1, seed: int = 5) -> Array:
    return np.random.default_rng(seed).normal(size=(batch, 8, 12, 12), scale=2).astype(np.float32)


@pytest.mark.parametrize("network", NETWORKS)
def test_bits_are_those_of_the_whole_model(network: Callable[[], bytes], tmp_path: Path) -> None:
    path = saved(tmp_path, network())
    executable = qdialect.compile(path, batch=2, fallback="framework")
    runners = [region.runner for region in executable.regions]
    assert {*runners} == {"qdialect", "ONNX Runtime"}
    for seed in (1, 2):
        assert_same(executable.results([image(2, seed)]), of_onnx_runtime(path, image(2, seed)))


def test_constants_that_are_no_numbers_go_to_the_framework(tmp_path: Path) -> None:
    b = Net()
    words = onnx.numpy_helper.from_array(np.array(["a", "b"], object), "words")
    same = b.node("Cast", b.node("Equal", *(b.node("Constant", value=words) for _ in range(2))), to=1)
    total = b.node("Mul", b.convolution(b.image()), b.node("ReduceSum", same, keepdims=0))
    path = saved(tmp_path, b.finish(total, dtype=np.float32, version=19))
    assert_same(qdialect.compile(path, fallback="framework").results([image()]), of_onnx_runtime(path, image()))


@pytest.mark.parametrize("depth", [1, 2])
def test_branches_read_the_result_of_a_later_node_of_the_file(depth: int, tmp_path: Path) -> None:
    path = saved(tmp_path, late(depth))
    executable = qdialect.compile(path, fallback="framework")
    for flag in (np.float32(1), np.float32(-1)):
        assert_same(executable.results([image(), np.array(flag)]), of_onnx_runtime(path, image(), np.array(flag)))


def test_a_model_on_which_only_the_optimizer_fails_runs_without_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sessions = ORT.InferenceSession

    def session(content: bytes, options: Any, **others: Any) -> Any:
        if options.graph_optimization_level != ORT.GraphOptimizationLevel.ORT_DISABLE_ALL:
            raise RuntimeError("optimizer fails")
        return sessions(content, options, **others)

    path = saved(tmp_path, middle())
    wanted = of_onnx_runtime(path, image())
    monkeypatch.setattr(ORT, "InferenceSession", session)
    assert_same(qdialect.compile(path, fallback="framework").results([image()]), wanted)


def test_nodes_refused_after_the_plan_are_left_to_the_framework(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    b = Net()
    path = saved(tmp_path, b.finish(b.convolution(b.image()), dtype=np.float32))
    wanted = of_onnx_runtime(path, image())
    emit = Emitter.emit

    def refusing(emitter: Emitter, value: Value) -> None:
        if value.element == "ui8":
            raise ConstraintError("C1", "no")
        emit(emitter, value)

    monkeypatch.setattr(Emitter, "emit", refusing)
    executable = qdialect.compile(path, fallback="framework", cache=False)
    assert_same(executable.results([image()]), wanted)
    with pytest.raises(ImportModelError, match="cannot be computed: ") as caught:
        qdialect.compile(path, fallback="none", cache=False)
    assert [note.message[-23:] for note in caught.value.diagnostics[0].notes] == [" cannot be computed: no"]
    assert with_note(caught.value, "more").diagnostics[0].notes[-1].message == "more"


@pytest.mark.parametrize("error", [PassError, VerificationError, CompileError])
def test_regions_refused_while_they_are_lowered_are_left_to_the_framework(
    error: type[QDialectError], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = saved(tmp_path, end())
    wanted = of_onnx_runtime(path, image())

    def refusing(*_: object, **__: object) -> None:
        raise error("no")

    monkeypatch.setattr("qdialect.driver.fallback.compile_tuned", refusing)
    assert_same(qdialect.compile(path, fallback="framework", cache=False).results([image()]), wanted)


def test_a_float_that_waits_is_computed_by_its_reader(tmp_path: Path) -> None:
    """So no f32 value leaves a region that a quantized one can stand for.

    The sum of two products is rounded once here and several times by ONNX Runtime: ties may fall to the other side.
    """
    path = saved(tmp_path, float_that_waits())
    executable = qdialect.compile(path, fallback="framework")
    *_, last = executable.regions
    assert last.is_compiled
    assert sum(" Conv " in title for title in last.nodes) == 1
    assert len(last.inputs) == 2
    (found,), (wanted,) = executable.results([image()]), of_onnx_runtime(path, image())
    steps = np.abs(found - wanted) / np.float32(X[0])
    assert steps.max() < 1.5
    assert np.count_nonzero(steps) < 0.01 * steps.size


def test_run_and_bind_write_into_the_arrays_of_the_caller(tmp_path: Path) -> None:
    path = saved(tmp_path, many_outputs())
    executable = qdialect.compile(path, fallback="framework")
    wanted = of_onnx_runtime(path, image())
    outputs = [np.empty(port.shape, port.dtype) for port in executable.outputs]
    executable.run([image()], outputs)
    assert_same(outputs, wanted)
    given = image(seed=7)
    call = executable.bind([given], outputs)
    given[:] = image()
    call()
    assert_same(outputs, wanted)


def test_arrays_that_do_not_fit(tmp_path: Path) -> None:
    executable = qdialect.compile(saved(tmp_path, middle()), fallback="framework")
    with pytest.raises(InputError, match=r"input 'x' must be float32\[1, 8, 12, 12\], but got float32\[1, 8, 12, 6\]"):
        executable(image()[..., ::2])
    with pytest.raises(InputError, match="network must be called with 1 input, but got 2"):
        executable(image(), image())
    given = image()
    with pytest.raises(InputError, match="must not share memory with another array of the call"):
        executable.run([given], [given])
    with pytest.raises(InputError, match="must be a contiguous and aligned array to be bound"):
        executable.bind([given.transpose(0, 1, 3, 2)], [np.empty((1, 8, 12, 12), np.float32)])


def test_a_shape_that_is_known_after_a_call_alone(tmp_path: Path) -> None:
    b = Net()
    inner = b.convolution(b.image())
    b.node("NonZero", inner, output="positions")
    path = saved(tmp_path, b.finish("positions", inner, dtype=[np.int64, np.float32]))
    executable = qdialect.compile(path, fallback="framework")
    assert executable.outputs[0].shape == (4, -1)
    assert_same(executable.results([image()]), of_onnx_runtime(path, image()))
    outputs = [np.empty((4, 3), np.int64), np.empty((1, 8, 12, 12), np.float32)]
    with pytest.raises(InputError, match="output 'positions' has a shape that is known after a call alone"):
        executable.run([image()], outputs)


def test_the_framework_does_not_run_nodes_whose_results_are_not_read(tmp_path: Path) -> None:
    """Sums over nothing are zeros, whatever gives the empty rows."""
    text = """<ir_version: 8, opset_import: ["": 17]> f (float[2,3] x) => (float[2,4] sums)
    <int64[1] zero = {0}, int64[1] one = {1}, float[0,4] weights = {}>
    { shares = Hardmax(x)
      rows = Slice(shares, zero, zero, one)
      sums = MatMul(rows, weights) }"""
    path = tmp_path / "empty.onnx"
    path.write_bytes(parser.parse_model(text).SerializeToString())
    np.testing.assert_array_equal(qdialect.compile(path)(np.ones((2, 3), np.float32)), np.zeros((2, 4)))


def test_weights_in_other_files(tmp_path: Path) -> None:
    path = saved(tmp_path, middle())
    wanted = of_onnx_runtime(path, image())
    model = onnx.ModelProto()
    model.ParseFromString(path.read_bytes())
    for tensor in model.graph.initializer:
        (tmp_path / f"{tensor.name}.bin").write_bytes(tensor.raw_data)
        external_data_helper.set_external_data(tensor, f"{tensor.name}.bin")
        tensor.ClearField("raw_data")
    (tmp_path / "apart.onnx").write_bytes(model.SerializeToString())
    executable = qdialect.compile(tmp_path / "apart.onnx", fallback="framework")
    assert_same(executable.results([image()]), wanted)


def test_the_default_warns(tmp_path: Path) -> None:
    with pytest.warns(qdialect.FallbackWarning) as caught:
        qdialect.compile(saved(tmp_path, middle()))
    (warning,) = caught
    text = str(warning.message)
    assert text.startswith("ONNX Runtime runs 2 of 13 nodes and 0 % of the multiply-accumulates: node 6 Hardmax")
    assert warning.filename == __file__


@pytest.mark.parametrize("request_", [{"target": "z80"}, {"threads": 0}, {"target": "sapphirerapids"}])
@pytest.mark.parametrize("batch", [1, 3])
def test_requests_that_the_framework_cannot_mend_are_refused(
    request_: dict[str, Any], batch: int, tmp_path: Path
) -> None:
    path = saved(tmp_path, middle())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(targets, "host_features", frozenset[str])
        with pytest.raises(CompileError, match=r"target must be one of|threads must be|which this one lacks"):
            qdialect.compile(path, batch=batch, **request_)


def test_a_framework_that_is_absent_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> None:
        assert name == "onnxruntime"

    monkeypatch.setattr("qdialect.frontends.frameworks.find_spec", absent)
    with pytest.raises(ImportModelError) as caught:
        qdialect.compile(saved(tmp_path, middle()))
    lines = str(caught.value).split("\n")
    assert lines[1] == "  node 6 Hardmax ('t6'): operator is not supported"
    assert lines[-1] == "  the extra 'fallback' brings ONNX Runtime: pip install 'qdialect[fallback]'"


def test_a_damaged_file_is_refused_and_not_run(tmp_path: Path) -> None:
    b = Net()
    with pytest.raises(ImportModelError, match="file is damaged"):
        qdialect.compile(saved(tmp_path, b.finish("nothing")), fallback="framework")


def test_nodes_that_nobody_runs_are_refused_with_both_reasons(tmp_path: Path) -> None:
    b = Net()
    custom = b.node("my.domain.Custom", b.convolution(b.image()))
    with pytest.raises(ImportModelError) as caught:
        qdialect.compile(saved(tmp_path, b.finish(custom, dtype=np.float32)), fallback="framework")
    text = str(caught.value)
    assert "my.domain.Custom ('t6'): operator is not supported" in text
    assert "ONNX Runtime does not take it" in text


def test_a_pipe_is_read_once(tmp_path: Path) -> None:
    """What cannot be read again is not divided: the reasons are told, and nothing waits."""
    pipe = tmp_path / "model.onnx"
    os.mkfifo(pipe)
    writer = Thread(target=pipe.write_bytes, args=(middle(),))
    writer.start()
    with pytest.raises(ImportModelError, match="operator is not supported"):
        qdialect.compile(pipe, fallback="framework")
    writer.join()


def repeated(b: ModelBuilder, value: str) -> str:
    """Squared twice by a loop, whose result may have another shape after each turn."""
    body = parser.parse_graph("""
      body (int64 i, bool c, float[1, 8, 16, 16] v) => (bool d, float[1, 8, 16, 16] w)
      { d = Identity (c) w = Mul (v, v) }""")
    return b.node("Loop", b.constant(np.array(2, np.int64)), b.constant(np.array(True)), value, body=body)


def test_a_tensor_of_unknown_rank_is_no_scalar(tmp_path: Path) -> None:
    b = ModelBuilder()
    x = b.input("image", (1, 8, 16, 16))
    path = tmp_path / "loop.onnx"
    path.write_bytes(b.finish(b.node("Sqrt", b.node("Relu", repeated(b, x))), dtype=np.float32))
    executable = qdialect.compile(path, fallback="framework")
    reasons = {name: reason for region in executable.regions for name, reason in region.reasons.items()}
    assert reasons["node 1 Relu ('t1')"] == "reads 't0': its type and shape are not known"
    image = np.random.default_rng(0).normal(size=(1, 8, 16, 16)).astype(np.float32)
    np.testing.assert_array_equal(executable(image), np.sqrt(np.maximum(image**2 * image**2, 0)))
