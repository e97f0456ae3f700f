"""Programs for many shapes: extents that `torch.export` leaves open, and expressions of them."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.utils._pytree as pytree
from tolerances import assert_floats_within
from torch import Tensor, nn
from torch.export import Dim
from torch_models import Function

import qdialect
from qdialect.driver.batching import network
from qdialect.frontends.building.checks import UnsupportedError
from qdialect.frontends.torch import import_torch
from qdialect.frontends.torch.program.symbolic_shapes import evaluate, shown, symbols_of
from qdialect.support.diagnostics import CompileError, ImportModelError


class Encoder(nn.Module):
    """Tokens with positions, attention, and a view with extents that are computed."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(10, 8)
        self.project = nn.Linear(8, 16)

    def forward(self, ids: Tensor) -> Tensor:
        batch, length = ids.shape
        hidden = self.tokens(ids) + self.tokens(torch.arange(length) % 10)
        heads = self.project(hidden).view(batch, length, 2, 8).transpose(1, 2) * length**-0.5
        attended = nn.functional.scaled_dot_product_attention(heads, heads, heads, is_causal=True)
        return attended.transpose(1, 2).reshape(batch, length * 16)[:, : length * 16 // 2]


MODEL = Encoder().eval()


def program() -> Any:
    sizes = {"ids": {0: Dim("batch", max=64), 1: Dim("length", min=3, max=50)}}
    return torch.export.export(MODEL, (ids(3, 12),), dynamic_shapes=sizes)


def ids(*shape: int) -> Tensor:
    return torch.tensor(np.random.default_rng(0).integers(0, 10, shape))


def name_of(exported: Any, index: int) -> str:
    """What the program calls an extent of its first input."""
    placeholder = next(n for n in exported.graph.nodes if n.op == "placeholder" and n.meta["val"].dtype == torch.int64)
    return str(placeholder.meta["val"].shape[index])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    torch.export.save(program(), tmp_path / "encoder.pt2")
    return tmp_path / "encoder.pt2"


def check(executable: Any, *shape: int) -> None:
    given = ids(*shape)
    assert_floats_within(executable(given.numpy()), MODEL(given).detach().numpy(), "layer")


def test_of_memory() -> None:
    exported = program()
    module = import_torch(exported, dims={name_of(exported, 1): 7}, batch=2)
    check(qdialect.compile(module), 2, 7)
    check(qdialect.compile(import_torch(exported, dims={"ids:0": 3, "ids:1": 4})), 3, 4)


def test_of_a_file(path: Path) -> None:
    executable = qdialect.compile(path, dims={"ids:1": 6})
    for shape in ((1, 6), (2, 6), (3, 9)):
        check(executable, *shape)
    assert executable.for_shape({"ids:1": 5}).inputs[0].shape == (1, 5)
    check(qdialect.compile(path, dims={"ids:1": 6}, trust=True), 1, 6)


def test_extents_that_stay_open_are_refused_at_once(path: Path) -> None:
    name = name_of(program(), 1)
    wanted = f"extent 1 of input 'ids' is open: dims must say how much '{name}' is, as --dim {name}=N does"
    with pytest.raises(ImportModelError, match=wanted):
        qdialect.compile(path)
    with pytest.raises(ImportModelError, match=wanted):
        import_torch(program())


@pytest.mark.parametrize("length", [2, 51])
def test_sizes_beyond_the_range_are_refused(path: Path, length: int) -> None:
    with pytest.raises(ImportModelError, match=rf"must be in \[3, 50\], but got {length}"):
        qdialect.compile(path, dims={"ids:1": length})
    with pytest.raises(ImportModelError, match=rf"must be in \[3, 50\], but got {length}"):
        import_torch(program(), dims={"ids:1": length})


def test_names_of_no_extent_are_refused(path: Path) -> None:
    with pytest.raises(ImportModelError, match="dims must name open extents of inputs, but got depth"):
        qdialect.compile(path, dims={"ids:1": 4, "depth": 3})


def joined() -> Any:
    size = Dim("size", min=1, max=100)
    sizes = ({1: size}, {1: 2 * size}, {1: 3 * size})
    given = torch.zeros(2, 5), torch.zeros(2, 10), torch.zeros(2, 15)
    function = Function(lambda x, y, z: torch.cat([x, y], 1) + z)
    return torch.export.export(function, given, dynamic_shapes={"given": sizes})


def test_extents_that_follow_from_others(tmp_path: Path) -> None:
    path = tmp_path / "joined.pt2"
    torch.export.save(joined(), path)
    executable = qdialect.compile(path, dims={"given_0:1": 4})
    assert [port.shape for port in executable.inputs] == [(2, 4), (2, 8), (2, 12)]
    arrays = [np.ones((2, count * 3), np.float32) for count in (1, 2, 3)]
    assert np.array_equal(executable(*arrays), np.full((2, 9), 2, np.float32))
    with pytest.raises(ImportModelError, match="must be one for all inputs, but got 8 and 9"):
        qdialect.compile(path, dims={"given_0:1": 4, "given_1:1": 9})


def test_an_extent_known_by_an_expression() -> None:
    sizes, function = {"given": ({1: 2 * Dim("half", max=50)},)}, Function(lambda x: x[:, ::2] + x[:, 1::2])
    exported = torch.export.export(function, (torch.zeros(2, 8),), dynamic_shapes=sizes)
    found = qdialect.compile(import_torch(exported, dims={"given_0:1": 6}))
    assert [port.shape for port in found.outputs] == [(2, 3)]
    with pytest.raises(ImportModelError, match="must be one for all inputs, but got 6 and 7"):
        import_torch(exported, dims={"given_0:1": 7})


SYMBOL = "Symbol('s0', positive=True, integer=True)"
EXPRESSIONS = {
    SYMBOL: 12,
    f"Mul(Integer(16), {SYMBOL})": 192,
    f"Add(Integer(-3), {SYMBOL})": 9,
    f"FloorDiv({SYMBOL}, Integer(5))": 2,
    f"Mod({SYMBOL}, Integer(5))": 2,
    f"Max(Integer(5), {SYMBOL})": 12,
    f"Pow({SYMBOL}, Integer(2))": 144,
    f"FloatPow(ToFloat({SYMBOL}), Float('-0.5', precision=53))": 12**-0.5,
    f"CeilToInt(IntTrueDiv({SYMBOL}, Integer(5)))": 3,
    f"Mul(Rational(1, 2), {SYMBOL})": 6,
}


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_expressions(text: str) -> None:
    assert evaluate(text, {"s0": 12}) == EXPRESSIONS[text]
    assert symbols_of(text) == {"s0"}


def test_expressions_are_shown_as_people_write_them() -> None:
    assert shown(f"Add(Mul(Integer(2), {SYMBOL}), Integer(1))") == "2*s0 + 1"
    assert shown(f"FloorDiv({SYMBOL}, Integer(2))") == "FloorDiv(s0, 2)"


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('true')",
        "open('x')",
        "Integer",
        "1 + 1",
        "Mul(",
        "Integer(open('x'))",
        "Symbol(print())",
        "Mul()",
        "Integer('a')",
        "Mod(Integer(1), Integer(0))",
        "Pow(Integer(10), Integer(1000000))",
        "Pow(Integer(-8), Float('0.5', precision=53))",
        "Float('nan', precision=53)",
        "Symbol('s1')",
        "(" * 300 + ")" * 300,
        "-" * 3000 + "1",
        "Integer(1)" + " " * 5000,
    ],
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(UnsupportedError):
        evaluate(text, {"s0": 12})


# Networks made of PyTorch's own layers, whose attention has tokens first and merges them with the batch.


def encoder(layers: int) -> nn.Module:
    layer = nn.TransformerEncoderLayer(8, 2, 12, batch_first=True, activation="gelu")
    return nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)


class Patches(nn.Module):
    """As in ViT: patches, a class token before them, positions, and a head for this token."""

    def __init__(self) -> None:
        super().__init__()
        self.patches, self.encoder, self.head = nn.Conv2d(3, 8, 4, 4), encoder(2), nn.Linear(8, 5)
        self.token, self.positions = nn.Parameter(torch.randn(1, 1, 8)), nn.Parameter(torch.randn(1, 5, 8))

    def forward(self, images: Tensor) -> Tensor:
        patches = self.patches(images).flatten(2).transpose(1, 2)
        tokens = torch.cat([self.token.expand(images.shape[0], -1, -1), patches], 1)
        return self.head(self.encoder(tokens + self.positions)[:, 0])


class Masked(nn.Module):
    """As in BERT: tokens, their types, and a mask of those that are no padding."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.types, self.positions = nn.Embedding(10, 8), nn.Embedding(2, 8), nn.Embedding(6, 8)
        self.encoder, self.pool = encoder(1), nn.Linear(8, 8)

    def forward(self, ids: Tensor, mask: Tensor, types: Tensor) -> tuple[Tensor, Tensor]:
        hidden = self.tokens(ids) + self.types(types) + self.positions(torch.arange(ids.shape[1]))
        hidden = self.encoder(hidden, src_key_padding_mask=mask == 0)
        return hidden, torch.tanh(self.pool(hidden[:, 0]))


def _flattened() -> nn.Module:
    layers = nn.Conv2d(3, 4, 3, 2, 1), nn.BatchNorm2d(4), nn.ReLU(), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(16, 5)
    return nn.Sequential(*layers)


def images(batch: int) -> list[Tensor]:
    return [torch.randn(batch, 3, 8, 8)]


def texts(batch: int) -> list[Tensor]:
    mask = torch.arange(6) <= torch.arange(batch)[:, None] % 5
    return [ids(batch, 6), mask.long(), ids(batch, 6) % 2]


STOCK: dict[str, tuple[Callable[[], nn.Module], Callable[[int], list[Tensor]]]] = {
    "layer": (lambda: nn.TransformerEncoderLayer(8, 2, 12, batch_first=True), lambda batch: [torch.randn(batch, 6, 8)]),
    "patches": (Patches, images),
    "masked": (Masked, texts),
    "flattened": (_flattened, images),
}


def exported_stock(name: str, *, is_quantized: bool, is_dynamic: bool = False, batch: int = 0) -> Any:
    """One of `STOCK` for batches of any size, or of one; in floats, or quantized by PT2E."""
    import_module("torch").manual_seed(2)
    create, draw = STOCK[name]
    model, given = create().eval(), tuple(draw(batch or 3))
    sizes = None if batch else tuple({0: Dim("batch", max=64)} for _ in given)
    program = torch.export.export(model, given, dynamic_shapes=sizes)
    if not is_quantized:
        return program
    x86: Any = import_module("torchao.quantization.pt2e.quantizer.x86_inductor_quantizer")
    config = x86.get_default_x86_inductor_quantization_config(is_dynamic=is_dynamic)
    pt2e: Any = import_module("torchao.quantization.pt2e.quantize_pt2e")
    prepared = pt2e.prepare_pt2e(program.module(), x86.X86InductorQuantizer().set_global(config))
    prepared(*given)
    return torch.export.export(pt2e.convert_pt2e(prepared), given, dynamic_shapes=sizes)


@pytest.mark.parametrize(
    ("name", "is_quantized", "batch"),
    [("layer", True, 0), ("patches", False, 0), ("masked", False, 1), ("flattened", True, 0)],
)
def test_stock_networks_take_any_batch(
    name: str, is_quantized: bool, batch: int, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compiled once, whatever the batch was when the program was exported."""
    monkeypatch.setattr(network, "_LARGEST_ARENA", 0)
    caplog.set_level("INFO", logger="qdialect")
    with torch.no_grad():
        program = exported_stock(name, is_quantized=is_quantized, batch=batch)
        open_program = exported_stock(name, is_quantized=is_quantized) if batch else program
        executable = qdialect.compile(program, batch="dynamic")
        for size in (1, 10):
            given = STOCK[name][1](size)
            found: Any = executable(*(one.numpy() for one in given))
            wanted = open_program.module()(*given)
            leaves: Callable[[Any], list[Any]] = pytree.tree_leaves
            for one, other in zip(leaves(found), leaves(wanted), strict=True):
                assert_floats_within(one, other.numpy(), "network")
    assert not [record for record in caplog.records if "compiled for" in record.message]


def test_ranges_of_a_whole_batch_are_told() -> None:
    """A dynamically quantized network depends on the batch, but for one with a range for each row."""
    wanted = "it is of the whole batch: dynamic quantization needs a range for each row"
    with torch.no_grad():
        program = exported_stock("layer", is_quantized=True, is_dynamic=True, batch=3)
        with pytest.raises(CompileError, match=wanted):
            qdialect.compile(program, batch="dynamic")
        quantization: Any = import_module("torchao.quantization")
        rows = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8)).eval()
        quantization.quantize_(rows, quantization.Int8DynamicActivationInt8WeightConfig())
        executable = qdialect.compile(torch.export.export(rows, (torch.randn(3, 8),)), batch="dynamic")
        for size in (1, 10):
            given = torch.randn(size, 8)
            found: Any = executable(given.numpy())
            assert_floats_within(found, rows(given).numpy(), "network")
