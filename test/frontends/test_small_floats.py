"""Networks of float16 and bfloat16 tensors against PyTorch and ONNX Runtime, bit for bit where these round once."""

import math
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import ml_dtypes
import numpy as np
import onnx
import pytest
import torch
import torch.nn.functional as nnf
from compiled_ops import Array, check_compiled
from onnx import TensorProto, helper, numpy_helper, parser
from onnx_graphs import of_onnx_runtime
from torch import Tensor, nn

import qdialect
from qdialect.frontends.onnx import import_onnx
from qdialect.frontends.torch import import_torch
from qdialect.reference import interpreter

Functions = Mapping[str, Callable[[Tensor, Tensor], Tensor]]

PYTORCH: Any = import_module("torch")
for name in ("torch.ao.quantization.fx._decomposed", "torchao.quantization"):
    # Their operators are in PyTorch's registry from then on.
    import_module(name)
TORCH = {torch.float16: np.float16, torch.bfloat16: ml_dtypes.bfloat16}


def array_of(tensor: Tensor) -> Array:
    if tensor.dtype != torch.bfloat16:
        return tensor.detach().numpy()
    return tensor.detach().contiguous().view(torch.int16).numpy().view(ml_dtypes.bfloat16)


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return PYTORCH.from_numpy(np.random.default_rng(seed).standard_normal(shape).astype(np.float32))


class Several(nn.Module):
    """All functions of two tensors."""

    def __init__(self, functions: Functions) -> None:
        super().__init__()
        self.functions = list(functions.values())

    def forward(self, x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        return tuple(function(x, y) for function in self.functions)


def run_torch(model: nn.Module, *tensors: Tensor) -> list[tuple[Array, Array]]:
    """What the reference and PyTorch compute; compiled code agrees with the reference."""
    module = import_torch(torch.export.export(model.eval(), tensors))
    arrays = [array_of(tensor) for tensor in tensors]
    found = interpreter.run(module, arrays)
    for target in ("x86-64", "x86-64-v3", "host"):
        check_compiled(module, target, [arrays], [found])
    with torch.no_grad():
        wanted = model(*tensors)
    listed = cast("tuple[Tensor, ...]", wanted if isinstance(wanted, tuple) else (wanted,))
    return list(zip(found, map(array_of, listed), strict=True))


def assert_equal(found: Any, wanted: Array, name: str = "") -> None:
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape), name
    np.testing.assert_array_equal(found.astype(np.float64), wanted.astype(np.float64), err_msg=name)


ONCE: Functions = {
    **{name: (lambda x, _, name=name: getattr(torch, name)(x)) for name in ("neg", "abs", "tanh", "sigmoid", "exp")},
    **{name: (lambda x, _, name=name: getattr(nnf, name)(x)) for name in ("gelu", "silu", "relu", "hardswish", "elu")},
    **{name: (lambda x, y, name=name: getattr(torch, name)(x, y)) for name in ("add", "sub", "mul", "div", "maximum")},
    # Sums, comparisons and remainders take numbers in the tensors' type, other kernels as float32.
    "add a number": lambda x, _: x + 0.1,
    "subtract from a number": lambda x, _: 1.7 - x,
    "subtract an integer": lambda x, _: x - 1001,
    "multiply by a number": lambda x, _: x * 0.3,
    "divide by a number": lambda x, _: x / 3,
    "compare": lambda x, _: x > 0.1,
    "equal": lambda x, _: x == 0.30078125,
    "remainder": lambda x, _: torch.remainder(x, 0.3),
    "shrink": lambda x, _: nnf.hardshrink(x, 0.3),
    "add a scalar": lambda x, _: x + torch.tensor(0.1),
    "multiply by a scalar": lambda x, _: x * torch.tensor(0.1),
    "multiply by floats": lambda x, _: x * torch.linspace(0, 1, 10),
    "clamp": lambda x, _: x.clamp(-0.33, 0.77),
    "choose": lambda x, _: torch.where(x > 0, x, 0.3),
    "fill": lambda x, _: x.masked_fill(x > 0, -1e4),
    "join": lambda x, y: torch.cat([x, y], 1),
    "join floats": lambda x, y: torch.cat([x, y.float()], 1),
    "move": lambda x, _: x.transpose(1, 2)[:, 1:7].reshape(2, 36).flip(1),
    "pad": lambda x, _: nnf.pad(x, (1, 1), value=0.3),
    "gather": lambda x, _: nnf.embedding(torch.tensor([[1, 0]]), x[0]),
    "sum": lambda x, _: x.sum(-1),
    "mean": lambda x, _: x.mean(),
    "largest": lambda x, _: x.amax(1),
    "index of the largest": lambda x, _: x.argmax(-1),
    "softmax": lambda x, _: x.softmax(-1),
    "layer norm": lambda x, _: nnf.layer_norm(x, (10,)),
    "product": lambda x, y: x @ y.transpose(1, 2),
    "linear": lambda x, y: nnf.linear(x, y[0], x[0, 0, :6]),
    "to float": lambda x, y: x.float() * y.float(),
    "to integers": lambda x, _: (x * 10).to(torch.int8),
    "range": lambda x, _: x + torch.arange(10, dtype=x.dtype) / 3,
    "infinity": lambda x, _: x * 3e38,
}
NEAR: Functions = {
    "batch norm": lambda x, _: nnf.batch_norm(x, x[0, :, 0], x[0, :, 0].abs(), x[0, :, 1], x[0, :, 2]),
    "rsqrt": lambda x, _: (x.abs() + 0.1).rsqrt(),
    "product of all": lambda x, _: x.prod(-1),
}
"""Of which PyTorch rounds parts."""


@pytest.mark.parametrize("dtype", TORCH)
def test_operators_round_as_pytorch(dtype: torch.dtype) -> None:
    x, y = drawn(2, 6, 10), drawn(2, 6, 10, seed=1)
    x[0, 0, :6] = torch.tensor([0.1, 0.3, 0.7, -0.1, 0.2, 0.30078125])
    results = run_torch(Several({**ONCE, **NEAR}), x.to(dtype), y.to(dtype))
    for name, (found, wanted) in zip([*ONCE, *NEAR], results, strict=True):
        if name in ONCE:
            assert_equal(found, wanted, name)
        else:
            step = 2.0**-7 if dtype == torch.bfloat16 else 2.0**-10
            np.testing.assert_allclose(found.astype(float), wanted.astype(float), rtol=step, atol=step, err_msg=name)


def attention(x: Tensor, y: Tensor, **arguments: Any) -> Tensor:
    key = y[:, None].expand(2, 4, 6, 10)
    return nnf.scaled_dot_product_attention(x[:, None].expand(2, 4, 6, 10), key, key, **arguments)


def quantized(choose: str, x: Tensor) -> Tensor:
    bounds: tuple[Any, ...] = (-128, 127)
    if choose == "rows":
        ops, of = PYTORCH.ops.torchao, ([1, 1, x.shape[-1]],)
        found = ops.choose_qparams_affine(x, "ASYMMETRIC", *of, torch.int8, *bounds, 1e-7, x.dtype, torch.int32)
        held = ops.quantize_affine(x, *of, *found, torch.int8, *bounds)
        return ops.dequantize_affine(held, *of, *found, torch.int8, *bounds, output_dtype=x.dtype)
    ops, bounds = PYTORCH.ops.quantized_decomposed, (*bounds, torch.int8)
    if choose == "tokens":
        found = ops._choose_qparams_per_token_asymmetric_impl(x, torch.int8)
        return ops.quantize_per_token(x, *found, *bounds)
    found = getattr(ops, choose).tensor(x, -128, 127, 1e-7, torch.int8)
    held = ops.quantize_per_tensor.tensor(x, *found, *bounds)
    return ops.dequantize_per_tensor.tensor(held, *found, *bounds, out_dtype=x.dtype)


def test_scales_of_tokens_are_those_of_pytorch() -> None:
    program = torch.export.export(Several({"tokens": lambda x, _: quantized("tokens", x)}), (drawn(4, 8).half(),) * 2)
    with pytest.raises(qdialect.ImportModelError, match="PyTorch computes scales in this type"):
        import_torch(program)


PARTS: Functions = {
    **{choose: (lambda x, _, choose=choose: quantized(choose, x)) for choose in ("choose_qparams", "rows")},
    "choose_qparams_symmetric": lambda x, _: quantized("choose_qparams_symmetric", x),
    "einsum": lambda x, y: torch.einsum("bij,bkj,bkl->bil", x, y, x),
    "cosine similarity": lambda x, y: torch.cosine_similarity(x[:, :, None], y[:, None], -1),
    "distance": lambda x, y: nnf.pairwise_distance(x[:, :, None], y[:, None]),
    "divergence": lambda x, y: nnf.kl_div(x.log_softmax(-1), y.softmax(-1), reduction="none"),
    "cross entropy": lambda x, y: nnf.cross_entropy(x, y.abs(), reduction="none"),
    "binary cross entropy": lambda x, y: nnf.binary_cross_entropy(x.sigmoid(), y.sigmoid(), reduction="none"),
    "squared error": lambda x, y: nnf.mse_loss(x, y, reduction="none"),
    "soft margin": lambda x, y: nnf.soft_margin_loss(x, y.sign(), reduction="none"),
    "logit": lambda x, _: x.sigmoid().logit(),
    "logarithm of a sum": lambda x, _: x[..., None].expand(2, 6, 10, 3).logsumexp((1, 3)),
    "logarithm of softmax": lambda x, _: x.log_softmax(-1),
    "quotient cut": lambda x, y: torch.div(x * 300, y, rounding_mode="trunc"),
    "quotient rounded down": lambda x, y: torch.div(x * 300, y, rounding_mode="floor"),
    "floor division": lambda x, y: (x * 1000) // torch.cat([y[:, :5], y[:, :1] * 0], 1),
    "quotient by a number": lambda x, _: torch.div(x * 300, 0.3, rounding_mode="trunc"),
    "quotient by one number": lambda x, y: torch.div(x * 300, y[:1, :1, :1], rounding_mode="floor"),
    "cube": lambda x, _: x.pow(3),
    "power": lambda x, _: x.abs().pow(1.7),
    "outer product": lambda x, y: torch.addr(x[0], x[0, :, 0], y[0, 0]),
    "cross product": lambda x, y: PYTORCH.linalg.cross(x[:, :3], y[:, :3], dim=1),
    "linear of transposed": lambda x, y: nnf.linear(x.transpose(0, 1), y[0], x[0, 0, :6]),
    "attention": attention,
    "masked attention": lambda x, y: attention(x, y, attn_mask=y[:, None, :, :6] > -0.5, scale=0.7),
    "causal attention": lambda x, y: attention(x, y, is_causal=True),
    "instance norm": lambda x, _: nnf.instance_norm(x.half()),
    "in place": lambda x, y: (x * 2).transpose_(1, 2).pow_(y.transpose(1, 2).abs() * 0 + 2),
}
"""What PyTorch makes of several operators or in a kernel that rounds what it computes on the way."""


def _first_of(layer: Any, x: Tensor, _: Tensor) -> Any:
    return layer(x)[0]


def _evaluated(module: Any, *arrays: Array) -> Any:
    return interpreter.run(module, list(arrays))


@pytest.mark.parametrize("dtype", TORCH)
def test_parts_round_as_pytorch(dtype: torch.dtype) -> None:
    PYTORCH.manual_seed(0)
    layers = [nn.GRU(10, 8, 2, bidirectional=True), nn.GRU(10, 8, batch_first=True, bias=False), nn.RNN(10, 8)]
    model = Several(PARTS)
    model.layers = nn.ModuleList([*layers, nn.LSTM(10, 8, proj_size=4)]).to(dtype)
    cells: dict[str, Any] = {str(layer): partial(_first_of, layer) for layer in model.layers}
    model.functions += cells.values()
    tensors = (drawn(2, 6, 10).to(dtype), drawn(2, 6, 10, seed=1).to(dtype))
    program, arrays = torch.export.export(model.eval(), tensors), list(map(array_of, tensors))
    is_compiled = dtype == torch.bfloat16
    run = qdialect.compile(program, fallback="none") if is_compiled else partial(_evaluated, import_torch(program))
    found: Any = run(*arrays)
    for name, one, other in zip([*PARTS, *cells], found, model(*tensors), strict=True):
        wanted = array_of(other)
        assert (one.dtype, one.shape) == (wanted.dtype, wanted.shape), name
        # Kernels of other CPUs add and raise in other orders.
        assert (one == wanted).mean() > 0.95, name


class Image(nn.Module):
    """Convolutions, a pool and products of images."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3, groups=8), nn.MaxPool2d(2)
        )
        self.classes = nn.Linear(8, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.classes(self.layers(x).mean((2, 3))).softmax(-1)


class Autocast(nn.Module):
    """A model that runs under autocast in a part."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = self.model(x)
        return y, y + x.mean()


@pytest.mark.parametrize("make", [lambda: Image().bfloat16(), lambda: Autocast(Image())], ids=["bfloat16", "autocast"])
def test_images_are_those_of_pytorch(make: Callable[[], nn.Module]) -> None:
    PYTORCH.manual_seed(0)
    model = make().eval()
    x = drawn(2, 3, 9, 9).to(torch.float32 if isinstance(model, Autocast) else torch.bfloat16)
    results = run_torch(model, x)
    assert_equal(*results[0])
    compiled = PYTORCH.compile(model, backend="qdialect", options={"fallback": "none"})
    with torch.no_grad():
        found = compiled(x)
    assert_equal(array_of(found[0] if isinstance(model, Autocast) else found), results[0][1])


def test_arrays_of_bfloat16_may_be_float32() -> None:
    """A caller without ml_dtypes gives and gets float32 numbers; one with it gets what PyTorch gives."""
    x = drawn(3, 8).bfloat16()
    executable = qdialect.compile(torch.export.export(nn.SiLU(), (x,)), fallback="none")
    assert (executable.inputs[0].dtype, executable.outputs[0].dtype) == (np.dtype(ml_dtypes.bfloat16),) * 2
    wanted = array_of(nnf.silu(x))
    assert_equal(executable(array_of(x)), wanted)
    assert_equal(executable(x.float().numpy()), wanted.astype(np.float32))
    assert torch.equal(executable(x, returns="torch"), nnf.silu(x))
    # As NumPy reads them from a file.
    assert_equal(executable(array_of(x).view("V2")), wanted)
    with pytest.raises(qdialect.InputError, match="must be bfloat16"):
        executable(x.double().numpy())


def test_saved_networks_keep_their_types(tmp_path: Path) -> None:
    x = drawn(3, 8).half()
    executable = qdialect.compile(torch.export.export(nn.GELU(), (x,)), fallback="none")
    executable.save(tmp_path / "gelu.so")
    found = qdialect.load(tmp_path / "gelu.so")
    assert found.inputs[0].dtype == np.float16
    assert_equal(found(x.numpy()), nnf.gelu(x).numpy())


# ONNX Runtime computes in float32, and rounds where the graph ends or where the model itself casts.

WEIGHT = (np.random.default_rng(1).standard_normal((8, 8)) / 3).astype(np.float16)
F32, F16, BF16 = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16
node = helper.make_node


def nodes_of(text: str) -> list[onnx.NodeProto]:
    return list(parser.parse_graph(f"g (float x) => (float y) {{ {text} }}").node)


def model_of(*parts: onnx.NodeProto | str, given: int = F16, outputs: tuple[int, ...] = (F16,)) -> bytes:
    """Of nodes and texts: from ``x`` [6, 8] to ``y`` and the like, with a weight ``w`` and the number ``c``."""
    constants = [numpy_helper.from_array(WEIGHT, "w"), numpy_helper.from_array(np.array(0.37, np.float16), "c")]
    constants.append(numpy_helper.from_array(np.array([2]), "axis"))
    named = zip("yz", outputs, strict=False)
    results = [
        helper.make_tensor_value_info(y, kind, None) if kind else onnx.ValueInfoProto(name=y) for y, kind in named
    ]
    source = helper.make_tensor_value_info("x", given, (6, 8))
    nodes = [node for part in parts for node in (nodes_of(part) if isinstance(part, str) else [part])]
    graph = helper.make_graph(nodes, "graph", [source], results, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    return model.SerializeToString()


def of_floats(text: str) -> bytes:
    return model_of(text, given=F32, outputs=(F32,))


def of_branch(text: str) -> onnx.GraphProto:
    return helper.make_graph(nodes_of(text), "branch", [], [helper.make_tensor_value_info("t", F16, None)])


BRANCHES: dict[str, Any] = {"then_branch": of_branch("t = Mul (x, c)"), "else_branch": of_branch("t = Add (x, c)")}
TRUE, HALVES = numpy_helper.from_array(np.array(True)), numpy_helper.from_array(np.array([1.5], np.float16))
MODELS = {
    "chain": model_of(
        "m = MatMul (x, w) a = Add (m, c) t = Transpose (a) y = Mul (t, c) z = Relu (a)", outputs=(F16, F16)
    ),
    "kernels of float16 in a row": model_of(
        "a = Add (x, c) r = Transpose (a) t = Transpose (r) y = Mul (t, c) m = Mod <fmod = 1> (a, c) z = Mul (m, m)",
        outputs=(F16, F16),
    ),
    "one kernel of float16": model_of("a = Add (x, c) r = Max (a, c) y = Mul (r, r)"),
    "casts at the ends": of_floats("a = Cast <to = 10> (x) b = Mul (a, c) y = Cast <to = 1> (b)"),
    "a pair of casts": of_floats("a = Cast <to = 10> (x) y = Cast <to = 1> (a)"),
    "a pair of casts to bfloat16": of_floats("a = Cast <to = 16> (x) y = Cast <to = 1> (a)"),
    "casts around a movement": of_floats("a = Cast <to = 10> (x) b = Transpose (a) y = Cast <to = 1> (b)"),
    "integers": model_of("i = Cast <to = 7> (x) a = Cast <to = 10> (i) y = Mul (a, c)"),
    "constants": model_of(
        node("Constant", [], ["k"], value=numpy_helper.from_array(WEIGHT)),
        "s = Shape (x)",
        node("ConstantOfShape", ["s"], ["o"], value=HALVES),
        "m = MatMul (o, k) y = Add (m, x)",
    ),
    "a choice": model_of("z = Greater (x, c) y = Where (z, x, c)", outputs=(F16, TensorProto.BOOL)),
    "a known branch": model_of(node("Constant", [], ["k"], value=TRUE), node("If", ["k"], ["y"], **BRANCHES)),
    "a branch": model_of("m = ReduceMax <keepdims = 0> (x) k = Greater (m, c)", node("If", ["k"], ["y"], **BRANCHES)),
    "scales of a softmax of single elements": model_of(
        "i = Cast <to = 2> (x) d = DequantizeLinear (i, c) r = Unsqueeze (d, axis) s = Softmax (r)",
        "y = QuantizeLinear (s, c)",
        outputs=(TensorProto.UINT8,),
    ),
    "infinities between bounds": model_of(
        "n = Sub (c, c) h = Div (x, n) y = Clip (h) z = Clip (h, n)", outputs=(F16, F16)
    ),
    "an output without a type": model_of("y = Mul (x, c)", outputs=(0,)),
    "what ONNX Runtime runs": model_of("a = Mul (x, c) l = ReduceL1 (w) d = Det (w) e = Mul (d, l) y = Add (a, e)"),
}


@pytest.mark.parametrize("name", MODELS)
def test_models_round_where_onnx_runtime_does(name: str, tmp_path: Path) -> None:
    content = MODELS[name]
    path = tmp_path / "model.onnx"
    path.write_bytes(content)
    executable = qdialect.compile(path, fallback="framework")
    x = np.random.default_rng(0).standard_normal((6, 8)).astype(executable.inputs[0].dtype)
    for one, other in zip(executable.results([x]), of_onnx_runtime(content, x), strict=True):
        assert_equal(one, other, name)


def _outside() -> TensorProto:
    tensor = TensorProto(data_type=F16, dims=[4], data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value="secret.bin")
    return tensor


DAMAGED = {
    "cannot be read": node("Constant", [], ["y"], value=TensorProto(data_type=F16, dims=[4], raw_data=b"odd")),
    "lies in another file": node("Constant", [], ["y"], value=_outside()),
    "must have 1 input": node("Cast", [], ["y"], to=F16),
    "which nothing before it gives": node("Cast", ["x"], [], to=F16),
    "nothing": node("DequantizeLinear", ["x"], [], output_dtype=F16),
}


@pytest.mark.parametrize("reason", DAMAGED)
def test_damaged_models_are_refused(reason: str) -> None:
    with pytest.raises(qdialect.ImportModelError, match=reason):
        import_onnx(model_of(DAMAGED[reason]))


def test_sparse_constants_are_widened() -> None:
    values, indices = helper.make_tensor("v", F16, [1], [1.5]), helper.make_tensor("i", TensorProto.INT64, [1], [3])
    sparse = helper.make_sparse_tensor(values, indices, [8])
    content = model_of(node("Constant", [], ["k"], sparse_value=sparse), node("Add", ["x", "k"], ["y"]))
    x = np.ones((6, 8), np.float16)
    (found,) = interpreter.run(import_onnx(content), [x])
    assert_equal(found, x + 1.5 * (np.arange(8) == 3).astype(np.float16))


@pytest.mark.parametrize("kind", [BF16, F16, TensorProto.FLOAT8E4M3FN], ids=["bfloat16", "float16", "float8"])
@pytest.mark.parametrize("batch", [6, "n"])
def test_outputs_have_their_types(kind: int, batch: int | str, tmp_path: Path) -> None:
    """Also where no input has one of them; ONNX Runtime, which computes Det, gives the bits of float8 numbers."""
    cast_of = [node("Cast", [source], [target], to=kind) for source, target in ("xy", "dz")]
    model = onnx.load_from_string(model_of(node("Det", ["w"], ["d"]), *cast_of, given=F32, outputs=(kind, kind)))
    if isinstance(batch, str):
        model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = batch
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    executable, x = qdialect.compile(path, fallback="framework"), np.linspace(-3, 3, 48, dtype=np.float32)
    dtype = helper.tensor_dtype_to_np_dtype(kind)
    found = executable(x.reshape(6, 8)[: 6 if batch == 6 else 1])
    assert [port.dtype for port in executable.outputs] == [dtype, dtype]
    assert_equal(found[0].ravel(), x.astype(dtype)[: found[0].size])
    assert_equal(found[1], np.linalg.det(WEIGHT.astype(np.float32)).astype(dtype))
    given = [np.zeros_like(one) for one in found]
    executable.run([x.reshape(6, 8)[: len(found[0])]], given)
    for one, other in zip(given, found, strict=True):
        assert_equal(one, other)


def test_bfloat16_arithmetic_is_rounded_at_the_end() -> None:
    """ONNX Runtime has no kernels for it."""
    weight = helper.make_tensor("v", BF16, (8, 4), WEIGHT[:, :4].astype(np.float32).ravel().tolist())
    graph = helper.make_graph(
        [node("MatMul", ["x", "v"], ["m"]), node("Mul", ["m", "m"], ["y"])],
        "graph",
        [helper.make_tensor_value_info("x", BF16, (6, 8))],
        [helper.make_tensor_value_info("y", BF16, (6, 4))],
        [weight],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    x = np.random.default_rng(0).standard_normal((6, 8)).astype(ml_dtypes.bfloat16)
    (found,) = interpreter.run(import_onnx(model.SerializeToString()), [x])
    product = x.astype(np.float64) @ WEIGHT[:, :4].astype(ml_dtypes.bfloat16).astype(np.float64)
    np.testing.assert_allclose(found.astype(float), product**2, rtol=2.0**-8 * math.sqrt(2), atol=1e-6)


class Decoder(nn.Module):
    """A table and products with weights beyond the second-level cache."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(1000, 640)
        self.products = nn.Sequential(nn.Linear(640, 1003), nn.SiLU(), nn.Linear(1003, 517, bias=False))

    def forward(self, ids: Tensor) -> Tensor:
        return self.products(self.table(ids))


@pytest.mark.parametrize("dtype", TORCH)
@pytest.mark.parametrize("rows", [1, 5, 40])
def test_weights_stay_16_bits_wide(dtype: torch.dtype, rows: int) -> None:
    PYTORCH.manual_seed(0)
    model, ids = Decoder().to(dtype).eval(), torch.arange(rows) * 7
    ((found, wanted),) = run_torch(model, ids)
    step = 2.0**-7 if dtype == torch.bfloat16 else 2.0**-10
    np.testing.assert_allclose(found.astype(float), wanted.astype(float), rtol=step, atol=step)
    executable = qdialect.compile(torch.export.export(model, (ids,)), fallback="none")
    assert executable.constants_bytes < 1.1 * sum(one.numel() * one.element_size() for one in model.parameters())
