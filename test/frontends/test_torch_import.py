"""What the PyTorch front end makes of programs as a whole: interfaces, archives, names of what it refuses."""

import io
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as nnf
from torch import Tensor, nn
from torch_models import Function, dequantized, network, quantized

import qdialect
from qdialect.cli.import_model import main
from qdialect.frontends.torch import import_torch, nodes_of
from qdialect.reference.interpreter import run

SCALE = 0.25


def f32_values(values: Tensor) -> Tensor:
    return dequantized(values, SCALE, 0, torch.int8)


def values(numbers: Tensor) -> Tensor:
    return quantized(numbers, SCALE, 0, torch.int8)


def program(function: Any, *arguments: Tensor) -> Any:
    return torch.export.export(Function(function), arguments)


def image() -> Tensor:
    return torch.zeros((1, 4, 6, 6), dtype=torch.int8)


def archive(function: Any, *arguments: Tensor) -> bytes:
    stream = io.BytesIO()
    torch.export.save(program(function, *arguments), stream)
    return stream.getvalue()


def rewritten(content: bytes, old: bytes, new: bytes) -> bytes:
    """An archive with other words in its files."""
    stream = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as whole, zipfile.ZipFile(stream, "w") as other:
        for name in whole.namelist():
            other.writestr(name, whole.read(name).replace(old, new))
    return stream.getvalue()


def notes_of(error: qdialect.QDialectError) -> list[str]:
    return [note.message for diagnostic in error.diagnostics for note in diagnostic.notes]


def failure(function: Callable[[Any], Any], *arguments: Tensor) -> list[str]:
    with pytest.raises(qdialect.ImportModelError) as caught:
        import_torch(program(function, *arguments))
    return notes_of(caught.value)


def test_interface() -> None:
    def both(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        return quantized(x, SCALE, 3, torch.uint8), f32_values(y)

    module = import_torch(program(both, torch.zeros(2, 3), torch.zeros(5, dtype=torch.int8)))
    text = str(module)
    assert '%arg0: tensor<2x3xf32> {qnn.name = "' in text
    assert '%arg1: tensor<5xi8> {qnn.name = "' in text
    x = np.array([[-1, 0, 0.125], [0.375, 30, 100]], np.float32)
    first, second = run(module, [x, np.arange(5, dtype=np.int8)])
    assert first.tolist() == [[0, 3, 3], [5, 123, 255]]
    assert second.tolist() == [0, 0.25, 0.5, 0.75, 1]


def test_parameters_are_constants() -> None:
    """Weights may be quantized by the program itself, and constants computed from others."""

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.arange(-6.0, 6.0).reshape(3, 4) / 8)

        def forward(self, x: Tensor) -> Tensor:
            weight = dequantized(quantized(self.weight * 2, 0.125, 0, torch.int8), 0.125, 0, torch.int8)
            return nnf.linear(f32_values(x), weight)

    net = Net()
    x = torch.tensor([[1, 2, 3, -4]], dtype=torch.int8)
    (found,) = run(import_torch(torch.export.export(net, (x,))), [x.numpy()])
    assert found.tolist() == net(x).tolist()


def test_values_narrower_than_their_type() -> None:
    def narrow(x: Tensor) -> Tensor:
        operator: Any = torch.ops.quantized_decomposed.quantize_per_tensor.default
        return operator(x, SCALE, 1, -100, 90, torch.int8)

    x = np.array([-1000, -20, 0, 1000], np.float32)
    (found,) = run(import_torch(program(narrow, torch.zeros(4))), [x])
    assert found.tolist() == [-100, -79, 1, 90]


def test_nodes_on_which_no_result_depends_do_not_matter() -> None:
    def pooled(x: Tensor) -> Tensor:
        largest, _ = nnf.max_pool2d(f32_values(x), 2, return_indices=True)
        torch.sin(f32_values(x))
        return values(largest)

    x = torch.tensor(np.random.default_rng(1).integers(-128, 128, (1, 4, 6, 6))).to(torch.int8)
    (found,) = run(import_torch(program(pooled, image())), [x.numpy()])
    assert np.array_equal(found, pooled(x).numpy())


def _angle(x: Tensor) -> Tensor:
    return torch.atan2(x, x)


def test_an_unsupported_node_is_named_with_its_module() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Sequential(Function(_angle))

        def forward(self, x: Tensor) -> Tensor:
            return self.inner(f32_values(x))

    with pytest.raises(qdialect.ImportModelError, match=r"has 1 unsupported operation\n") as caught:
        import_torch(torch.export.export(Net(), (image(),)))
    assert notes_of(caught.value) == ["node 'atan2' aten.atan2 (inner.0): operator is not supported"]


REFUSED: dict[str, Callable[[Any], Any]] = {
    "argument 'weight' must be constant": lambda x: nnf.conv2d(x, x),
    "dropout must not train": lambda x: nnf.dropout(x, training=True),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_refused_options(reason: str) -> None:
    (note,) = failure(lambda x: REFUSED[reason](f32_values(x)), image())
    assert note.endswith(f": {reason}")


def test_other_types_are_refused() -> None:
    def double(x: Tensor) -> Tensor:
        return x * 2

    note, *_ = failure(double, torch.zeros(3, dtype=torch.float64))
    assert note == "input 'given_0': type must be i1, i8, ui8, i16, i32, i64, f32, f16 or bf16, but got float64"


@pytest.mark.parametrize("is_known", [False, True])
def test_a_scale_that_no_integers_hold(is_known: bool) -> None:
    """Masks are the smallest float32 numbers; their quantizer writes a scale around 1e36."""
    drawn = np.random.default_rng(3).normal(size=(5, 7)).astype(np.float32)
    mask = torch.tensor(np.triu(np.full((5, 7), np.finfo(np.float32).min)))

    def masked(x: Tensor) -> Tensor:
        wide = mask if is_known else mask + x
        return x + dequantized(
            quantized(wide, 1.3344405750530544e36, 127, torch.int8), 1.3344405750530544e36, 127, torch.int8
        )

    program = torch.export.export(Function(masked), (torch.tensor(drawn),))
    found = qdialect.compile(import_torch(program))(drawn)
    assert np.array_equal(found, masked(torch.tensor(drawn)).numpy())


def test_open_extents_are_said() -> None:
    sizes = {"given": ({0: torch.export.Dim("batch"), 1: torch.export.Dim("width")},)}
    exported = torch.export.export(Function(values), (torch.zeros(2, 3),), dynamic_shapes=sizes)
    assert "tensor<1x5xf32>" in str(import_torch(exported, dims={"given_0:1": 5}))
    with pytest.raises(qdialect.ImportModelError, match=r"extent 1 of input 'given_0' is open: dims must say"):
        import_torch(exported)


def test_archive(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = network("perceptron", "xnnpack")
    path = tmp_path / "net.pt2"
    torch.export.save(model.exported(), path)
    assert main([str(path)]) == 0
    text = capsys.readouterr().out
    assert text == str(import_torch(model.exported()))
    assert main([str(path), "--trust-pt2"]) == 0
    assert capsys.readouterr().out == text
    titles = [node.title for node in nodes_of(path)]
    assert "node 'linear' aten.linear (layers.0)" in titles


def test_damaged_archives(capfd: pytest.CaptureFixture[str]) -> None:
    """One error says what is wrong; PyTorch's log of it is not shown."""
    whole = archive(values, torch.zeros(3))
    readers = {
        False: "(file must be a zip archive|member '.*' is damaged): ",
        True: "file is no archive that .* reads: ",
    }
    for content in (b"", b"no zip at all", whole[: len(whole) // 2], whole[200:]):
        for trust, reason in readers.items():
            with pytest.raises(qdialect.ImportModelError) as caught:
                import_torch(content, trust=trust)
            message = str(caught.value)
            assert re.match(f"'model.pt2': {reason}", message)
            assert "\n" not in message
    assert capfd.readouterr() == ("", "")


def test_unregistered_operators_are_named(capfd: pytest.CaptureFixture[str]) -> None:
    whole = archive(values, torch.zeros(3))
    renamed = rewritten(whole, b"quantize_per_tensor", b"of_another_package")
    with pytest.raises(qdialect.ImportModelError, match=r"reads: .*quantized_decomposed\.of_another_package\.default"):
        import_torch(renamed, trust=True)
    with pytest.raises(qdialect.ImportModelError) as caught:
        import_torch(renamed)
    assert notes_of(caught.value) == ["node 'of_another_package' of_another_package: operator is not supported"]
    assert capfd.readouterr() == ("", "")


def test_without_torch(tmp_path: Path) -> None:
    """The package imports and says what is missing where PyTorch is not installed."""
    (tmp_path / "net.pt2").write_bytes(b"")
    script = f"""
import sys
sys.modules["torch"] = None
import qdialect
from qdialect.cli.import_model import main
sys.exit(main([{str(tmp_path / "net.pt2")!r}]))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    needed = (
        "reading .pt2 files needs the package 'torch', which the extra 'torch' brings: pip install 'qdialect[torch]'"
    )
    assert needed in done.stderr
