"""Networks whose open extents change from call to call: one for many lengths, where that is proven."""

import pickle
import runpy
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from onnx import TensorProto
from onnx_graphs import CONTRIB, Array, ModelBuilder, numbers, of_onnx_runtime

import qdialect
from qdialect.driver import fallback
from qdialect.driver.padding.network import padded
from qdialect.driver.padding.rules import Side
from qdialect.frontends.onnx import import_onnx
from qdialect.reference import interpreter
from qdialect.runtime import Executable
from qdialect.runtime.shaped import Padding
from qdialect.support.diagnostics import CompileError

HEADS, WIDTH, VOCABULARY = 2, 16, 11
HIDDEN = HEADS * WIDTH

PAST, TOKENS, TOTAL = "past_sequence_length", "sequence_length", "total_sequence_length"


class Graph(ModelBuilder):
    """Arrays are constants."""

    def node(self, kind: str, *inputs: str | Array, output: str = "", **attributes: Any) -> str:
        names = [one if isinstance(one, str) else self.constant(one) for one in inputs]
        outputs = output.split() if output else [f"v{len(self.nodes)}"]
        self.node_of_many(kind, names, outputs, **attributes)
        return outputs[0]


def integers(*values: int) -> Array:
    return np.array(values, np.int64)


def joined_caches() -> bytes:
    """A decoder as exporters write it: caches are joined, and the mask is computed from shapes."""
    g = Graph()
    x = g.node("Gather", numbers(VOCABULARY, HIDDEN), "input_ids")
    tokens, total = (
        g.node("Gather", g.node("Shape", name), np.array(1, np.int64)) for name in ("input_ids", "attention_mask")
    )
    one = np.array(1, np.int64)
    own = g.node("Unsqueeze", g.node("Range", g.node("Sub", total, tokens), total, one), integers(1))
    is_seen = g.node("LessOrEqual", g.node("Range", np.array(0, np.int64), total, one), own)
    counts = g.node("Unsqueeze", g.node("Cast", "attention_mask", to=TensorProto.BOOL), integers(1, 2))
    low = np.float32(np.finfo(np.float32).min)
    bias = g.node("Where", g.node("And", is_seen, counts), np.zeros((), np.float32), np.array(low))
    split = integers(0, 0, HEADS, WIDTH)
    q, k, v = (
        g.node(
            "Transpose",
            g.node("Reshape", g.node("MatMul", x, numbers(HIDDEN, HIDDEN, seed=i)), split),
            perm=[0, 2, 1, 3],
        )
        for i in range(3)
    )
    keys = g.node("Concat", "past_keys", k, output="keys", axis=2)
    values = g.node("Concat", "past_values", v, output="values", axis=2)
    scores = g.node("Add", g.node("MatMul", q, g.node("Transpose", keys, perm=[0, 1, 3, 2])), bias)
    heads = g.node("MatMul", g.node("Softmax", scores, axis=-1), values)
    rows = g.node("Reshape", g.node("Transpose", heads, perm=[0, 2, 1, 3]), integers(0, 0, HIDDEN))
    g.node("MatMul", g.node("Add", x, rows), numbers(HIDDEN, VOCABULARY), output="logits")
    return _decoder(g)


def shared_lengths() -> bytes:
    """A decoder as onnxruntime-genai writes it: GroupQueryAttention places tokens by the sum of the mask."""
    g = Graph()
    x = g.node("Gather", numbers(VOCABULARY, HIDDEN), "input_ids")
    last = g.node("Sub", g.node("ReduceSum", "attention_mask", integers(1)), integers(1))
    total = g.node("Gather", g.node("Shape", "attention_mask"), np.array(1, np.int64))
    lengths = [g.node("Cast", one, to=TensorProto.INT32) for one in (last, total)]
    rows = [g.node("MatMul", x, numbers(HIDDEN, HIDDEN, seed=i)) for i in range(3)]
    angles = [np.cos(numbers(600, WIDTH // 2)), np.sin(numbers(600, WIDTH // 2))]
    how = {"num_heads": HEADS, "kv_num_heads": HEADS, "do_rotary": 1}
    operands = [*rows, "past_keys", "past_values", *lengths, *angles]
    heads = g.node(f"{CONTRIB}.GroupQueryAttention", *operands, output="heads keys values", **how)
    few_bits = np.random.default_rng(3).integers(0, 256, (VOCABULARY, 1, HIDDEN // 2), np.uint8)
    operands = [g.node("Add", x, heads), few_bits, np.abs(numbers(VOCABULARY))]
    how = {"K": HIDDEN, "N": VOCABULARY, "bits": 4, "block_size": HIDDEN}
    g.node(f"{CONTRIB}.MatMulNBits", *operands, output="logits", **how)
    return _decoder(g)


def _decoder(g: Graph) -> bytes:
    g.input("input_ids", ("batch", TOKENS), np.int64)
    g.input("attention_mask", ("batch", TOTAL), np.int64)
    for name in ("past_keys", "past_values"):
        g.input(name, ("batch", HEADS, PAST, WIDTH))
    shapes = dict.fromkeys(("keys", "values"), ("batch", HEADS, TOTAL, WIDTH))
    return g.finish(
        "logits", "keys", "values", dtype=np.float32, shapes={"logits": ("batch", TOKENS, VOCABULARY), **shapes}
    )


def call_of(tokens: int, past: int) -> list[Array]:
    ids = np.random.default_rng(tokens + past).integers(0, VOCABULARY, (1, tokens))
    caches = [numbers(1, HEADS, past, WIDTH, seed=seed) for seed in (5, 6)]
    return [ids, np.ones((1, tokens + past), np.int64), *caches]


def check(executable: Executable, content: bytes, calls: Sequence[tuple[int, int]]) -> None:
    """Results are those of ONNX Runtime for (tokens, earlier ones)."""
    for call in calls:
        arrays = call_of(*call)
        wanted, found = of_onnx_runtime(content, *arrays), executable(*arrays)
        for one, other in zip(found, wanted, strict=True):
            assert one.flags.c_contiguous
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5, err_msg=str(call))
        given = [np.empty_like(one) for one in found]
        executable.bind(arrays, given)()
        executable.run(arrays, given)
        for one, other in zip(found, given, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """Grows by one with each network that is compiled."""
    found: list[None] = []
    compile_tuned = fallback.compile_tuned

    def counted(*arguments: Any, **how: Any) -> Executable:
        found.append(None)
        return compile_tuned(*arguments, **how)

    monkeypatch.setattr(fallback, "compile_tuned", counted)
    return found


@pytest.mark.parametrize("decoder", [joined_caches, shared_lengths])
def test_steps_of_a_decoder_are_compiled_once(
    decoder: Callable[[], bytes], compiled: list[None], tmp_path: Path
) -> None:
    path, content = tmp_path / "decoder.onnx", decoder()
    path.write_bytes(content)
    # A prompt, its first step, a second prompt.
    executable = qdialect.compile(path, dims={PAST: 0, TOKENS: 5, TOTAL: 5}, fallback="none")
    check(executable, content, [(5, 0), (1, 5), (6, 0)])
    assert len(compiled) == 3
    check(executable, content, [(1, past) for past in (6, 7, 20, 64)] + [(7, 0), (3, 0)])
    assert len(compiled) == 3


def test_nothing_is_compiled_for_calls_within_ranges(compiled: list[None], tmp_path: Path) -> None:
    path, content = tmp_path / "decoder.onnx", shared_lengths()
    path.write_bytes(content)
    dims = {PAST: (0, 40), TOKENS: 1, TOTAL: (1, 41)}
    executable = qdialect.compile(path, dims=dims, fallback="none")
    count = len(compiled)
    check(executable, content, [(1, past) for past in (40, 0, 1, 2, 17, 39)])
    check(pickle.loads(pickle.dumps(executable)), content, [(1, 23)])
    assert len(compiled) == count
    executable.save(tmp_path / "largest.so")
    check(qdialect.load(tmp_path / "largest.so"), content, [(1, 40)])


class Rows(torch.nn.Module):
    """One more row behind those of a cache; the mask counts all of them."""

    def forward(self, x: torch.Tensor, mask: torch.Tensor, cache: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        rows = torch.cat([cache, x * mask.cumsum(-1)[:, -1:, None]], 1)
        scores = (rows @ x.transpose(1, 2)).squeeze(-1) + torch.log(mask)
        return (scores.softmax(-1)[:, None] @ rows), rows


@pytest.mark.parametrize("dims", [{"cache:1": 7}, {"cache:1": (1, 40)}])
def test_a_program_whose_lengths_depend_on_each_other(dims: Any, compiled: list[None], tmp_path: Path) -> None:
    def inputs(past: int) -> list[torch.Tensor]:
        return [
            torch.tensor(one) for one in (numbers(1, 1, 4), np.ones((1, past + 1), np.float32), numbers(1, past, 4))
        ]

    past = torch.export.Dim("past", min=1, max=300)
    program = torch.export.export(Rows(), tuple(inputs(7)), dynamic_shapes=({}, {1: past + 1}, {1: past}))
    torch.export.save(program, tmp_path / "rows.pt2")
    executable = qdialect.compile(tmp_path / "rows.pt2", dims=dims, fallback="none")
    for count in (7, 8, 1, 21, 40):
        arrays = inputs(count)
        for found, wanted in zip(executable(*arrays), Rows()(*arrays), strict=True):
            np.testing.assert_allclose(found, wanted.numpy(), rtol=1e-4, atol=1e-5)
    assert len(compiled) == 2


def test_the_example_generates_the_tokens_of_the_frameworks(capsys: pytest.CaptureFixture[str]) -> None:
    path = Path(__file__).parents[2] / "examples" / "generate" / "generate.py"
    main = runpy.run_path(str(path))["main"]
    own, onnx_runtime, own_static, pytorch = main(["--tokens", "10", "--temperature", "0.5"])
    assert own == onnx_runtime
    assert own_static == pytorch
    assert len({len(own), len(own_static)}) == 1
    assert capsys.readouterr().out.count("tokens/s") == 4


Operator = tuple[str, Sequence[str | Array], dict[str, Any]]


def _slice(start: int, end: int, step: int = 1) -> Operator:
    return "Slice", ["x", integers(start), integers(end), integers(1), integers(step)], {}


# By name: an operator on x, [2, n, 4], and the sides at which n may have padding.
OPERATORS: dict[str, tuple[Operator, str]] = {
    "element by element": (("Mul", ["x", numbers(4)], {}), "back front"),
    "sum": (("ReduceSum", ["x", integers(1)], {}), "back front"),
    "sum of all": (("ReduceSum", ["x"], {}), ""),
    "largest": (("ReduceMax", ["x"], {"axes": [1]}), "back front"),
    "smallest": (("ReduceMin", ["x"], {"axes": [0, 1]}), "back front"),
    "product": (("ReduceProd", ["x"], {"axes": [1]}), "back front"),
    "mean": (("ReduceMean", ["x"], {"axes": [1]}), ""),
    "softmax": (("Softmax", ["turned"], {"axis": 2}), "back front"),
    "softmax along another dimension": (("Softmax", ["x"], {"axis": 2}), "back front"),
    "running sum": (("CumSum", ["x", np.array(1)], {}), "back front"),
    "running sum from the end": (("CumSum", ["x", np.array(1)], {"reverse": 1, "exclusive": 1}), "back front"),
    "first entry": (_slice(0, 1), "back"),
    "first entries that may be missing": (_slice(0, 3), ""),
    "last entry": (_slice(-1, 2**31 - 1), "front"),
    "without the first": (_slice(1, 2**31 - 1), "back"),
    "without the last": (_slice(0, -1), "front"),
    "in reverse": (_slice(-1, -(2**31), -1), ""),
    "every second": (_slice(0, 2**31 - 1, 2), ""),
    "last element": (("Gather", ["x", np.array(-1)], {"axis": 1}), ""),
    "before a constant": (("Concat", ["x", numbers(2, 3, 4)], {"axis": 1}), "front"),
    "before zeros": (("Concat", ["x", np.zeros((2, 3, 4), np.float32)], {"axis": 1}), "back front"),
    "what is not 0 before zeros": (("Concat", ["raised", np.zeros((2, 3, 4), np.float32)], {"axis": 1}), "front"),
    "behind a constant": (("Concat", [numbers(2, 3, 4), "x"], {"axis": 1}), "back"),
    "twice": (("Concat", ["x", "x"], {"axis": 1}), ""),
    "twice along another dimension": (("Concat", ["x", "x"], {"axis": 2}), "back front"),
    "joined with its neighbours": (("Reshape", ["x", integers(2, -1)], {}), ""),
    "split": (("Reshape", ["x", integers(2, -1, 2, 2)], {}), "back front"),
    "moved": (("Transpose", ["x"], {"perm": [1, 0, 2]}), "back front"),
    "rows by a matrix": (("MatMul", ["x", numbers(4, 3)], {}), "back front"),
    "products of all": (("MatMul", ["x", "turned"], {}), "back front"),
    "products over all": (("MatMul", ["turned", "raised"], {}), "back front"),
    "largest index": (("ArgMax", ["x"], {"axis": 1}), ""),
    "its own extent": (("Shape", ["x"], {}), ""),
    "positions": (("Add", ["x", "positions"], {}), "back"),
    "quantized": (("DynamicQuantizeLinear", ["x"], {}), "back front"),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_padding_counts_for_nothing(name: str) -> None:
    """In a network of 12 entries that computes 2 to 12; what lies in padding after the first op is not 0."""
    (kind, operands, attributes), sides = OPERATORS[name]
    g, names = Graph(), [one for one in operands if isinstance(one, str)]
    if "turned" in names:
        g.node("Transpose", "x", perm=[0, 2, 1], output="turned")
    if "raised" in names:
        g.node("Add", "x", np.array(np.inf, np.float32), output="infinite")
        g.node("Where", g.node("Equal", "x", np.zeros((), np.float32)), "infinite", "x", output="raised")
    if "positions" in names:
        length = g.node("Gather", g.node("Shape", "x"), np.array(1))
        g.node("Cast", g.node("Range", np.array(0), length, np.array(1)), to=TensorProto.FLOAT, output="places")
        g.node("Unsqueeze", "places", integers(1), output="positions")
    g.node(kind, *operands, output="y a b" if kind.startswith("Dynamic") else "y", **attributes)
    g.input("x", (2, "n", 4))
    content = g.finish("y", dtype=None)
    accepted = [side.value for side in Side if _computes_all(content, side)]
    assert " ".join(sorted(accepted)) == sides


def _computes_all(content: bytes, side: Side) -> bool:
    """Whether a network of 12 entries is padded for fewer; if it is, its results are those of networks of fewer."""
    smaller = {count: import_onnx(content, dims={"n": 12 - count}) for count in (10, 5, 3, 0)}
    module = import_onnx(content, dims={"n": 12})
    try:
        axes = padded(module, [smaller[10], smaller[5]], side)
    except CompileError:
        return False
    padding = Padding(tuple(axes[0]), tuple(axes[1]), side is Side.FRONT)
    for count, network in smaller.items():
        x, whole = numbers(2, 12 - count, 4), np.zeros((2, 12, 4), np.float32)
        padding.entries(whole, axes[0][0], count)[...] = x
        found = interpreter.run(module, [whole, np.array([count], np.int32)])
        wanted = interpreter.run(network, [x])
        for one, other, own in zip(found, wanted, axes[1], strict=True):
            np.testing.assert_allclose(padding.entries(one, own, count), other, rtol=1e-5, atol=1e-6)
    return True
