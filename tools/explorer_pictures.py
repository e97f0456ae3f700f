"""docs/explore-*.png: the pages of `qdialect-explore` for three networks, as a browser shows them.

``python tools/explorer_pictures.py`` draws them in headless Chromium, and measures the networks where it runs.
MobileNetV2 is one of the models that ``make models`` fetches.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "test")]

from onnx_graphs import ModelBuilder  # noqa: E402

from qdialect.bench import models  # noqa: E402
from qdialect.cli import explore  # noqa: E402

SIZE = "1300,800"


@dataclass(frozen=True)
class Picture:
    name: str
    suffix: str
    write: Callable[[Path], None]
    selected: str
    """The kernel that is chosen, by the end of its name."""


def mobilenet(path: Path) -> None:
    """MobileNetV2 as TensorFlow quantized it."""
    found = models.find("tf2_mobilenet_v2_1.0_224_ptq")
    if found is None:
        raise SystemExit("MobileNetV2 is not here: make models fetches it")
    shutil.copy(found, path)


def transformer(path: Path) -> None:
    """Two layers of an encoder, quantized by PT2E."""
    torch: Any = import_module("torch")
    x86: Any = import_module("torchao.quantization.pt2e.quantizer.x86_inductor_quantizer")
    pt2e: Any = import_module("torchao.quantization.pt2e.quantize_pt2e")
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(128, 4, 512, batch_first=True, activation="gelu")
    model = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()
    tokens = torch.randn(1, 64, 128)
    quantizer = x86.X86InductorQuantizer().set_global(x86.get_default_x86_inductor_quantization_config())
    prepared = pt2e.prepare_pt2e(torch.export.export(model, (tokens,)).module(), quantizer)
    prepared(tokens)
    torch.export.save(torch.export.export(pt2e.convert_pt2e(prepared), (tokens,)), path)


def detector(path: Path) -> None:
    """A detector with boxes on two scales, whose non-maximum suppression ONNX Runtime computes."""
    rng, b = np.random.default_rng(0), ModelBuilder()

    def rounded(name: str, value: str) -> str:
        scale = b.parameters((0.04, 117), np.uint8)
        found = b.node("QuantizeLinear", value, *scale, output=f"{name}/quantized")
        return b.node("DequantizeLinear", found, *scale, output=name)

    def conv(name: str, data: str, inputs: int, outputs: int, stride: int, window: int) -> str:
        weights = rng.integers(-127, 128, (outputs, inputs, window, window)).astype(np.int8)
        strides, pads = [stride, stride], [window // 2] * 4
        result = b.node("Conv", data, b.weight(weights, 0.01), pads=pads, strides=strides, output=f"{name}/conv")
        return rounded(name, b.node("Relu", result, output=f"{name}/relu"))

    value = rounded("pixels", b.input("image", (1, 3, 96, 96)))
    found: dict[str, list[str]] = {"boxes": [], "scores": []}
    inputs = 3
    for number, outputs in enumerate((16, 32, 64)):
        value = conv(f"block_{number}", value, inputs, outputs, 2, 3)
        inputs = outputs
        if number:
            for kind, channels in (("boxes", 4), ("scores", 8)):
                head = conv(f"{kind}_{number}", value, outputs, channels, 1, 1)
                last = b.node("Transpose", head, perm=[0, 2, 3, 1], output=f"{kind}_{number}/last")
                shape = b.constant(np.array([1, -1, channels], np.int64))
                found[kind].append(b.node("Reshape", last, shape, output=f"{kind}_{number}/flat"))
    boxes, scores = (b.node("Concat", *parts, axis=1, output=kind) for kind, parts in found.items())
    likely = b.node("Transpose", b.node("Sigmoid", scores, output="sigmoid"), perm=[0, 2, 1], output="by_class")
    limits = [b.constant(np.array(one)) for one in (np.int64(20), np.float32(0.5), np.float32(0.6))]
    chosen = b.node("NonMaxSuppression", boxes, likely, *limits, output="chosen")
    path.write_bytes(b.finish(b.node("Cast", chosen, to=1, output="detections"), dtype=np.float32))


PICTURES = (
    Picture("mobilenet", ".tflite", mobilenet, "expanded_conv_3_add_add"),
    Picture("transformer", ".pt2", transformer, "linear_3"),
    Picture("detector", ".onnx", detector, "by_class"),
)


def draw(picture: Picture, folder: Path, browser: str) -> None:
    model, page, image = (folder / f"{picture.name}{suffix}" for suffix in (picture.suffix, ".html", ".png"))
    picture.write(model)
    if explore.main([str(model), "-o", str(page), "--quiet"]):
        raise SystemExit(1)
    flags = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'browser'}"]
    found = re.search(rf'"kernel": ?"([^"]*{picture.selected})"', page.read_text())
    if found is None:
        raise SystemExit(f"the page must have a kernel '{picture.selected}'")
    link = f"file://{page}#kernel={quote(found[1])}"
    shot = [f"--window-size={SIZE}", "--hide-scrollbars", "--virtual-time-budget=4000", f"--screenshot={image}", link]
    subprocess.run([browser, *flags, *shot], check=True, capture_output=True)


def main() -> None:
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        raise SystemExit("chromium must be installed to draw pictures")
    with tempfile.TemporaryDirectory() as folder:
        for picture in PICTURES:
            draw(picture, Path(folder), browser)
            image = Path(folder, f"{picture.name}.png")
            shutil.copy(image, ROOT / "docs" / f"explore-{picture.name}.png")


if __name__ == "__main__":
    main()
