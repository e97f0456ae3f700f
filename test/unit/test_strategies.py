"""Drawn networks on every kind of target: all that this machine executes, and some as plain vector ops."""

import re

import numpy as np
import pytest
from strategy_networks import Network, drawn

from qdialect import targets
from qdialect.aot.object_file import disassembly, object_code
from qdialect.ir.context import parse
from qdialect.lowering.pipeline.phases import lower
from qdialect.reference.interpreter import run
from qdialect.runtime import compile_module
from qdialect.targets import TARGETS, resolve

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


def test_portable_code_needs_no_instruction(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(targets, "host_features", frozenset[str])
    network = Network(4)
    network.convolution(8, 1)
    assert "llvm.x86" not in str(lower(parse(network.text()), resolve("avx512vbmi,portable")).module)
    assert_same(network, ["avx512vbmi,portable"])


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


@pytest.mark.parametrize(
    ("name", "dot"),
    [("avx512bw", "vpmaddubsw"), ("avx2", "vpmaddubsw"), ("sse4.1", "pmaddubsw"), ("x86-64", "pmaddwd")],
)
def test_depthwise_layers_sum_products_in_pairs_where_there_is_no_vnni(name: str, dot: str) -> None:
    network = Network(6)
    network.shape[3] = 64
    network.value, network.input = "%x", network.type
    network.convolution(64, 3, groups=64, near=True)
    chosen = resolve(name)
    text = disassembly(object_code(lower(parse(network.text()), chosen).module, chosen))
    assert re.search(rf"\b{dot}\b", text)
    assert ("maddubsw" in text) == ("maddubsw" in dot)


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
