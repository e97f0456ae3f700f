"""Strategies of contractions: drawn networks on every kind of target, the order of loops, and groups."""

import re
from typing import Any

import numpy as np
import pytest
from compiled_ops import Attributes, check, tensor
from drawn_graphs import graph
from drawn_networks import Network, drawn
from quantized_layers import requantize

from qdialect import targets
from qdialect.aot.object_file import disassembly, object_code
from qdialect.dialect import Conv2DOp, DenseOp, MatMulOp, build
from qdialect.dialect.constants import constant
from qdialect.ir._mlir import ir
from qdialect.ir.context import parse
from qdialect.lowering.cost.register_tiles import Layout
from qdialect.lowering.cost.strategy import Strategy, TiledOperand, strategy_of, tile_model
from qdialect.lowering.pipeline.phases import lower
from qdialect.passes.fuse_qnn import FuseQnnPass
from qdialect.passes.pipeline import PassManager
from qdialect.reference.interpreter import run
from qdialect.runtime import compile_module
from qdialect.targets import TARGETS, resolve
from qdialect.targets.cpus import CPUS

KINDS = [name for name in TARGETS if name != "generic"]
EXECUTED = [name for name in KINDS if TARGETS[name].features <= targets.host_features()]
PORTABLE = [f"{name},portable" for name in KINDS if name not in EXECUTED or name in ("avx512vbmi", "avx2")]


def assert_same(network: Network, names: list[str]) -> None:
    module = parse(network.text())
    image = network.rng.integers(0, 256, [int(n) for n in re.findall(r"\d+(?=x)", network.input)]).astype(np.uint8)
    wanted = run(module, [image])[0]
    assert len(np.unique(wanted)) > 3, "a network whose result depends on its input"
    for name in names:
        found = compile_module(module, target=name)(image)
        np.testing.assert_array_equal(found, wanted, err_msg=f"target {name}")


def test_every_strategy_that_this_cpu_executes_gives_the_bits_of_the_reference() -> None:
    assert_same(drawn(1), EXECUTED)


def test_portable_code_of_a_strategy_gives_the_same_bits() -> None:
    network = Network(3)
    network.convolution(21, 1, table=True)
    assert_same(network, PORTABLE)


USED = {
    "avx512vbmi": ("zmm", {"vpdpbusd", "vpermt2b"}, set[str]()),
    "avx512vnni": ("zmm", {"vpdpbusd", "vpshufb"}, {"vpermi2b", "vpermb", "vpermt2b"}),
    "avx512bw": ("zmm", {"vpmaddwd", "vpshufb"}, {"vpdpbusd", "vpermi2b", "vpermb", "vpermt2b"}),
    "amxint8": ("zmm", {"vpdpbusd", "vpermt2b"}, {"{vex} vpdpbusd"}),
    "avxvnniint8": ("ymm", {"{vex} vpdpbusd", "vpshufb"}, set[str]()),
    "avxvnni": ("ymm", {"{vex} vpdpbusd", "vpshufb"}, set[str]()),
    "avx2": ("ymm", {"vpmaddwd", "vpshufb"}, {"vpdpbusd"}),
    "haswell": ("ymm", {"vpmaddwd", "vpshufb"}, {"vpdpbusd"}),
    "sse4.1": ("xmm", {"pmaddwd", "pshufb"}, {"vpmaddwd"}),
    "x86-64": ("xmm", {"pmaddwd"}, {"pshufb", "pmuldq", "vpmaddwd"}),
}


@pytest.mark.parametrize("name", USED)
def test_code_has_the_registers_and_the_instructions_of_its_target(name: str) -> None:
    widest, used, unknown = USED[name]
    network = Network(5)
    network.convolution(70, 1, table=True)
    chosen = resolve(name)
    text = disassembly(object_code(lower(parse(network.text()), chosen).module, chosen))
    assert [kind for kind in ("xmm", "ymm", "zmm") if f"%{kind}" in text or kind in text][-1] == widest
    found = set(re.findall(r"(?:\{vex\} )?\b[a-z]\w+", text))
    assert used <= found
    assert not unknown & found


def test_tiles_fit_the_registers_of_every_machine() -> None:
    for name in (*TARGETS, *CPUS):
        target = resolve(name)
        model = tile_model(target)
        for choice in model.choices() if model else ():
            for vectors, rows in choice.tiles.rows.items():
                others = 2 * rows + 3 if model and model.layout is Layout.WORDS else vectors + 1
                assert rows * vectors + others <= target.machine.vector_registers
        strategy = strategy_of(target)
        pairs = strategy.model_of(Layout.PAIRS) if Layout.PAIRS in strategy.others else None
        for choice in pairs.choices() if pairs else ():
            for vectors, rows in choice.tiles.rows.items():
                # Weights, a broadcast row, a product and ones.
                assert rows * vectors + vectors + 3 <= target.machine.vector_registers


# Contractions in which all pixels meet one tile of channels before the next: large weights are read once.

Case = tuple[tuple[int, int, int, int], int, tuple[int, ...]]
# Weights [OC, KH, KW, IC / groups], groups, zero points of the weights: 75 channels are tiles of every width.
CASES: list[Case] = [((75, 3, 3, 5), 1, (0,)), ((70, 1, 1, 9), 1, (-128, 127)), ((48, 3, 3, 4), 3, (5,))]


def convolution(
    data: ir.Value, case: tuple[tuple[int, ...], int, tuple[int, ...]], rng: np.random.Generator
) -> ir.Value:
    shape, groups, points = case
    weight = constant(rng.integers(-128, 128, shape, dtype=np.int8))
    source: Any = build(
        Conv2DOp, data, weight, None, element="i32", input_scale=0.02, input_zero_point=200, weight_scales=(0.01,),
        weight_zero_points=tuple(points[i % len(points)] for i in range(shape[0])), groups=groups,
        padding=(shape[1] // 2,) * 4,
    ).output  # fmt: skip
    return requantize(source, weight_scales=(0.01,))


def contractions() -> ir.Module:
    """Convolutions, grouped and not, a dense layer of one row, and products in groups."""
    rng = np.random.default_rng(4)

    def body(*arguments: ir.Value) -> list[ir.Value]:
        *images, row, left, right = arguments
        found = [convolution(data, case, rng) for data, case in zip(images, CASES, strict=True)]
        weight = constant(rng.integers(-128, 128, (67, 33), dtype=np.int8))
        values: Attributes = {"element": "i32", "input_scale": 0.02, "input_zero_point": 7, "weight_scales": (0.01,)}
        dense = build(DenseOp, row, weight, None, **values).output
        return [*found, dense, build(MatMulOp, left, right, weight_zero_points=(9,), **values).output]

    images = [tensor((2, 7, 5, shape[3] * groups), "ui8") for shape, groups, _ in CASES]
    others = [tensor((1, 33), "ui8"), tensor((3, 11, 6), "ui8"), tensor((3, 6, 72), "i8")]
    module = graph([*images, *others], body)
    PassManager(FuseQnnPass()).run(module)
    return module


def pixels_inside(_: Strategy, weights: TiledOperand, data: TiledOperand) -> bool:
    assert weights.size > 0
    assert data.tiles > 0
    return True


def test_all_pixels_for_each_tile_of_channels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Strategy, "is_weight_stationary", pixels_inside)
    check(contractions())
