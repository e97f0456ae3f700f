"""Download sources of the real networks of the tests.

``python -m tools.models`` downloads those that are missing and checks every one against its sha256.
"""

from __future__ import annotations

import hashlib
import os
import sys
import urllib.request
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path

from qdialect.bench.models import find
from qdialect.support.diagnostics import QDialectError
from qdialect.support.files import write_files

CHUNK = 1 << 16


class ModelError(QDialectError):
    """A model cannot be downloaded, or is not the file it should be."""


@dataclass(frozen=True)
class Model:
    """A model file: its name here, its public address, and what it must be."""

    file: str
    url: str
    size: int
    sha256: str
    licence: str


def _at(repository: str, commit: str, path: str) -> str:
    return f"https://raw.githubusercontent.com/{repository}/{commit}/{path}"


_TFLITE = (
    Model(
        "mobilenet_v1_0.25_224_quant.tflite",
        _at(
            "tensorflow/tflite-support",
            "dd3362ea685bb7ab1f7268c81ec567d3b720ae57",
            "tensorflow_lite_support/cc/test/testdata/task/vision/mobilenet_v1_0.25_224_quant.tflite",
        ),
        508786,
        "e480eb15572f86d3d5f1be6e83e35b3c7d509ab2bcec353707d1f614e14edca2",
        "Apache-2.0",
    ),
    Model(
        "vww_96_int8.tflite",
        _at(
            "mlcommons/tiny",
            "1afd2c9820f795965a6134facd0b4dfae41ef23f",
            "benchmark/training/visual_wake_words/trained_models/vww_96_int8.tflite",
        ),
        333288,
        "597a384c8c2c8a1276f04702f25013b7838f2f814f1ca7c174d295b73e3d6b7b",
        "Apache-2.0",
    ),
    Model(
        "tf2_mobilenet_v2_1.0_224_ptq.tflite",
        _at(
            "google-coral/test_data", "104342d2d3480b3e66203073dac24f4e2dbb4c41", "tf2_mobilenet_v2_1.0_224_ptq.tflite"
        ),
        4070174,
        "5d3137241276e79c86d14a74fe43581398ae0e815191d3dba45495b810840e8c",
        "Apache-2.0",
    ),
    Model(
        "bisonai_mobilenetv3_mnist.tflite",
        _at(
            "Bisonai/quantized-mobilenetv3-mnist-android",
            "ce01fda065d5bd9c699a2fc2a251366ac9840bfb",
            "app/src/main/assets/model_mnist.tflite",
        ),
        1944576,
        "46974ea7ae8d00f311d4ced904cb39c71588e645a62076858d7dcc897d851aa0",
        "Apache-2.0",
    ),
    Model(
        "pretrainedResnet_quant.tflite",
        _at(
            "mlcommons/tiny",
            "1afd2c9820f795965a6134facd0b4dfae41ef23f",
            "benchmark/training/image_classification/trained_models/pretrainedResnet_quant.tflite",
        ),
        98496,
        "3c002613d1b2475eb51dd78dfb85a546c8ae658dee71cf6ade43b022fe205415",
        "Apache-2.0",
    ),
    Model(
        "kws_ref_model.tflite",
        _at(
            "mlcommons/tiny",
            "1afd2c9820f795965a6134facd0b4dfae41ef23f",
            "benchmark/training/keyword_spotting/trained_models/kws_ref_model.tflite",
        ),
        53936,
        "aeea436800704fce17b17292e4412630ad856e9d777c044c64ef748a880bd0ae",
        "Apache-2.0",
    ),
    Model(
        "ad01_int8.tflite",
        _at(
            "mlcommons/tiny",
            "1afd2c9820f795965a6134facd0b4dfae41ef23f",
            "benchmark/training/anomaly_detection/trained_models/ad01_int8.tflite",
        ),
        276976,
        "87cf24194ef93d1d9b11a591d805526b98008e351655d29883c825c9c106ba24",
        "Apache-2.0",
    ),
    Model(
        "deeplabv3_mnv2_dm05_pascal_quant.tflite",
        _at(
            "google-coral/test_data",
            "104342d2d3480b3e66203073dac24f4e2dbb4c41",
            "deeplabv3_mnv2_dm05_pascal_quant.tflite",
        ),
        760904,
        "0470d2a782aa54eeeb99d32e7b6b3fb7722905c7c4f5d26bd957ec861366d48b",
        "Apache-2.0",
    ),
    Model(
        "dcgan_generator_int8.tflite",
        _at("gicLAB/SECDA-TFLite", "9d42878b77be51d61f1f2eaf340199cd44cf100a", "data/models/dcgan_gen.tflite"),
        2342760,
        "88d94931b07e1f85ef436ec4e0806040b7896b49e2f0f497ad058f8fd6c0004c",
        "Apache-2.0",
    ),
)

MODELS: Mapping[str, Model] = {model.file.removesuffix(".tflite"): model for model in _TFLITE}
"""Every model the project knows, by name."""


def download(models: Iterable[Model], folder: Path | None = None) -> Iterator[tuple[Model, Path, bool]]:
    """Make sure that each of `models` is here; yields the model, its path, and whether it was downloaded now.

    A model found anywhere in the look-up is checked and left alone; a missing one is written to `folder` (by default
    ``$QDIALECT_MODELS``, else ``models/`` of the checkout), whole or not at all.  Raises `ModelError` when a
    model cannot be fetched or has another checksum.
    """
    target = folder or Path(os.environ.get("QDIALECT_MODELS") or Path(__file__).parents[1] / "models")
    for model in models:
        found = find(model.file, target)
        path = found or target / model.file
        if found is None:
            _fetch(model, path)
        else:
            _check(model, found.read_bytes(), str(found))
        yield model, path, found is None


def main(arguments: Sequence[str] | None = None) -> int:
    """``python -m tools.models [NAME ...]``: download what is missing (of the named models, or of all)."""
    names = sys.argv[1:] if arguments is None else list(arguments)
    unknown = [name for name in names if name not in MODELS]
    if unknown:
        print(f"error: unknown model '{unknown[0]}'; known: {', '.join(MODELS)}", file=sys.stderr)
        return 1
    try:
        for model, path, is_new in download([MODELS[name] for name in names or MODELS]):
            print(f"{'downloaded' if is_new else 'found':10} {path}  ({model.licence})")
    except ModelError as error:
        print(error.render(), file=sys.stderr)
        return 1
    return 0


def _fetch(model: Model, path: Path) -> None:
    try:
        data = b"".join(_read(model))
        _check(model, data, model.url)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_files({path: data})
    except (OSError, HTTPException) as error:
        raise ModelError(f"cannot download model '{model.file}' from {model.url}: {error}") from error


def _read(model: Model) -> Iterator[bytes]:
    done = 0
    with urllib.request.urlopen(model.url, timeout=60) as response:
        while chunk := response.read(CHUNK):
            done += len(chunk)
            _show_progress(model, done)
            yield chunk


def _show_progress(model: Model, done: int) -> None:
    if sys.stderr.isatty():
        end = "\n" if done >= model.size else ""
        print(f"\r{model.file}: {done / 1e6:.1f} of {model.size / 1e6:.1f} MB", end=end, file=sys.stderr, flush=True)


def _check(model: Model, data: bytes, source: str) -> None:
    found = hashlib.sha256(data).hexdigest()
    if found != model.sha256:
        raise ModelError(f"model '{model.file}' must have sha256 {model.sha256}, but got {found} from {source}")


if __name__ == "__main__":
    sys.exit(main())
