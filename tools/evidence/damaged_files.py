"""Damaged model files of every format: each ends in an error of the project, or runs."""

from __future__ import annotations

import io
import warnings
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import recordings

import qdialect
from qdialect import QDialectError
from tools.evidence.drawn_networks import drawn
from tools.evidence.outcomes import EQUAL, Outcome, Rank
from tools.evidence.torch_cases import sample_program

_TEXT = b"""
func.func @main(%x: tensor<2x8xi8>) -> tensor<2x8xi8> {
  %w = "qnn.constant"() {value = dense<3> : tensor<8x8xi8>} : () -> tensor<8x8xi8>
  %sums = "qnn.dense"(%x, %w) {input_scale = 0.5 : f64, input_zero_point = 7 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>} : (tensor<2x8xi8>, tensor<8x8xi8>) -> tensor<2x8xi32>
  %y = "qnn.requantize"(%sums) {input_scale = 0.5 : f64, weight_scales = array<f64: 0.25>,
    input_zero_points = array<i64: 0>, output_scale = 2.0 : f64, output_zero_point = 3 : i64, axis = 1 : i64,
    rounding = "fixed64_up", multiplier = "f64"} : (tensor<2x8xi32>) -> tensor<2x8xi8>
  func.return %y : tensor<2x8xi8>
}
"""


def outcome_of_damage(seed: int) -> Outcome:
    """What the damaged file of a seed ends in; numbers are not compared, since nobody knows what is right."""
    rng = np.random.default_rng(seed)
    suffix, content = _whole(seed)
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"model{suffix}"
        path.write_bytes(damaged(rng, content))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                _use(path)
        except QDialectError:
            return Outcome(Rank.REFUSED)
        except Exception as error:
            return Outcome(Rank.CRASH, f"{type(error).__name__}: {error}"[:160])
    return EQUAL


def damaged(rng: np.random.Generator, content: bytes) -> bytes:
    """One to four changes of a file."""
    found = bytearray(content)
    for _ in range(int(rng.integers(1, 5))):
        if not found:
            break
        at, size = int(rng.integers(len(found))), int(rng.integers(1, 64))
        match int(rng.integers(5)):
            case 0:
                del found[at : at + size]
            case 1:
                found[at:at] = found[at : at + size]
            case 2:
                found[at : at + size] = rng.integers(0, 256, len(found[at : at + size]), np.uint8).tobytes()
            case 3:
                del found[at + 1 :]
            case _:
                found[at] ^= 1 << int(rng.integers(8))
    return bytes(found)


def _use(path: Path) -> None:
    """Compile it, or load it where it is a compiled network, and call it where its inputs are small."""
    is_compiled = path.suffix == ".so"
    executable = qdialect.load(path) if is_compiled else qdialect.compile(path, fallback="none", cache=False)
    ports = executable.inputs
    if sum(int(np.prod(port.shape)) for port in ports) < 1 << 20:
        executable(*(np.zeros(port.shape, port.dtype) for port in ports))


def _whole(seed: int) -> tuple[str, bytes]:
    """A file of one of the formats, taken in turns, with its suffix."""
    suffixes = (".tflite", ".onnx", ".pt2", ".mlir", ".mlirbc")
    suffix = suffixes[seed % len(suffixes)]
    if suffix == ".tflite":
        models = _recorded_models()
        return suffix, models[seed % len(models)]
    return suffix, _file(suffix, seed % 97)


@cache
def _recorded_models() -> Sequence[bytes]:
    return [one.model for one in recordings.read_family("tflite_operators").values()]


@cache
def _file(suffix: str, number: int) -> bytes:
    if suffix == ".onnx":
        return drawn(np.random.default_rng(number))[0].SerializeToString()
    if suffix == ".pt2":
        return sample_program()
    if suffix == ".mlir":
        return _TEXT
    file = io.BytesIO()
    qdialect.parse(_TEXT.decode()).operation.write_bytecode(file)
    return file.getvalue()
