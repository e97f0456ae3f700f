"""The demonstration: where no model is, and what it counts."""

import re
from pathlib import Path

import numpy as np
import pytest

import qdialect
from qdialect.bench import models
from qdialect.cli.demo import layers, network
from qdialect.frontends.tflite.seeded_mobilenet import write_mobilenet


def small_mobilenet(path: str | Path) -> None:
    write_mobilenet(path, seed=0, size=32)


@pytest.fixture
def no_models(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(name: str, kind: str = "") -> None:
        return None

    monkeypatch.setattr(models, "find", nothing)
    monkeypatch.setattr(models, "find_reference", nothing)
    monkeypatch.setattr(network, "write_mobilenet", small_mobilenet)
    monkeypatch.setattr(network, "_IMAGE", (1, 32, 32, 3))


@pytest.mark.usefixtures("no_models")
def test_without_models_it_writes_one_and_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    case = network.find_case()
    different, result = network.show(case)
    assert different + network.show_program(case, result) == 0
    text = capsys.readouterr().out
    assert "is not here ('make models' downloads it): writing its layers with random weights" in text
    assert "Every layer is compared with the NumPy reference, run here." in text
    assert "layers compared  31: 0 of" in text
    assert re.search(r"shared library +\d+ bytes, with \d+ of constants", text)
    assert re.search(r"start +\d+\.\d ms from the start of a program in C", text)
    assert re.search(r"compared with Python +0 of \d+ elements differ", text)


@pytest.mark.usefixtures("no_models")
def test_a_wrong_element_is_counted() -> None:
    case = network.find_case()
    first = min(case.layers)
    wrong = dict(case.layers)
    wrong[first] = wrong[first] ^ np.uint8(1)
    changed = network.Case(case.title, case.source, case.module, case.image, wrong)
    assert network.show(changed)[0] == wrong[first].size


def test_without_a_c_compiler_the_demonstration_goes_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    empty = network.Case("", "", qdialect.parse("module {}"), np.zeros(1, np.uint8), {})
    assert network.show_program(empty, empty.image) == 0
    assert "CC names 'no-such-compiler'" in capsys.readouterr().out


@pytest.mark.parametrize("layer", layers.LAYERS, ids=lambda layer: layer.name)
def test_a_layer_is_one_kernel_and_exact(layer: layers.Layer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layers, "_BATCH", 1)
    monkeypatch.setattr(layers, "_REFERENCE_BATCH", 1)
    monkeypatch.setattr(layers, "_HEIGHT", 9)
    name, *_, kernels, calls, _, _, different = layers.measured(layer)[0]
    assert (name, kernels, calls) == (layer.name, "1", "1")
    assert different.startswith("0 of ")
