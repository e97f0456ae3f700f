"""Every flow, by name; what a flow needs is imported when it runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tools.zoo.flows.files import Files
from tools.zoo.flows.samples import CALIBRATION_SEEDS, TEST_SEEDS, drawn, save
from tools.zoo.networks.network import Built, Network


@dataclass(frozen=True)
class Flow:
    """A way to quantize: of networks of `framework`, to a file with `suffix`."""

    name: str
    framework: str
    """``torch`` or ``keras``."""
    suffix: str
    quantize: Callable[[Built, Network, Files, Path], None]
    """Writes the last argument."""

    def make(self, network: Network, files: Files, *, is_small: bool) -> Path:
        """Build `network`, write its inputs and its quantized model; returns the model's path.

        Raises whatever the tools of the framework raise.
        """
        files.folder.mkdir(parents=True, exist_ok=True)
        built = network.build(is_small)
        save(files.inputs, drawn(built.draw, TEST_SEEDS))
        target = files.model(self.name, self.suffix)
        # A file under its own name is whole.
        partial_target = target.with_name(f"partial.{target.name}")
        self.quantize(built, network, files, partial_target)
        return partial_target.rename(target)


def _float_onnx(built: Built, network: Network, files: Files) -> Path:
    from tools.zoo.flows.onnx_export import export

    if not files.float_onnx.exists():
        export(built, network.exporter, files.float_onnx)
    return files.float_onnx


def _static(name: str, built: Built, network: Network, files: Files, target: Path) -> None:
    from tools.zoo.flows.onnx_static import STATIC_FLOWS

    source = _float_onnx(built, network, files)
    STATIC_FLOWS[name].quantize(source, target, drawn(built.draw, CALIBRATION_SEEDS))


def _dynamic(name: str, built: Built, network: Network, files: Files, target: Path) -> None:
    from tools.zoo.flows.onnx_dynamic import DYNAMIC_FLOWS

    DYNAMIC_FLOWS[name].quantize(_float_onnx(built, network, files), target)


def _pt2e(name: str, built: Built, _: Network, __: Files, target: Path) -> None:
    from tools.zoo.flows.pt2e import quantize

    quantize(built, name, target, drawn(built.draw, CALIBRATION_SEEDS))


def _tflite(name: str, built: Built, _: Network, __: Files, target: Path) -> None:
    from tools.zoo.flows.keras_tflite import convert

    convert(built, name, target, drawn(built.draw, CALIBRATION_SEEDS))


def _blocks(name: str, built: Built, network: Network, files: Files, target: Path) -> None:
    from tools.zoo.flows.few_bits import quantize_blocks

    quantize_blocks(name, _float_onnx(built, network, files), target)


def _torchao(name: str, built: Built, _: Network, __: Files, target: Path) -> None:
    from tools.zoo.flows.few_bits import quantize_wrapped

    quantize_wrapped(name, built, target)


def _nncf(name: str, built: Built, network: Network, files: Files, target: Path) -> None:
    from tools.zoo.flows.onnx_nncf import quantize

    quantize(name, _float_onnx(built, network, files), target, drawn(built.draw, CALIBRATION_SEEDS))


def _genai(name: str, built: Built, _: Network, __: Files, target: Path) -> None:
    from tools.zoo.flows.onnx_genai import build

    build(built, name, target, built.draw(1, TEST_SEEDS[0]))


STATIC = ("qdq_u8s8", "qdq_u8s8_tensor", "qdq_s8s8", "qoperator_u8s8")
DYNAMIC = ("dynamic_s8", "dynamic_u8")
PT2E = ("pt2e_x86", "pt2e_x86_dynamic", "pt2e_xnnpack")
PT2E_QAT = ("pt2e_x86_qat", "pt2e_xnnpack_qat")
TFLITE = ("tflite_int8", "tflite_dynamic")
EDGE = ("edge_int8", "edge_16x8", "edge_dynamic", "edge_dynamic_int4", "edge_weights")
NNCF = ("nncf_int8", "nncf_weights8", "nncf_weights4")
BLOCKS = ("nbits4", "nbits4_level4", "nbits8", "nbits8_level4")
GENAI = ("genai_int4", "genai_int4_k_quant")
TORCHAO = ("torchao_int4", "torchao_int8", "torchao_int8_dynamic", "torchao_int8_dynamic_int4")
TORCHAO_QAT = ("torchao_int4_qat", "torchao_int8_dynamic_int4_qat")
BFLOAT16 = ("bfloat16", *(f"{name}_bfloat16" for name in TORCHAO))

FLOWS: Mapping[str, Flow] = {
    **{name: Flow(name, "torch", ".onnx", partial(_static, name)) for name in STATIC},
    **{name: Flow(name, "torch", ".onnx", partial(_dynamic, name)) for name in DYNAMIC},
    **{name: Flow(name, "torch", ".pt2", partial(_pt2e, name)) for name in (*PT2E, *PT2E_QAT)},
    **{name: Flow(name, "torch", ".onnx", partial(_nncf, name)) for name in NNCF},
    **{name: Flow(name, "torch", ".onnx", partial(_blocks, name)) for name in BLOCKS},
    **{name: Flow(name, "torch", ".onnx", partial(_genai, name)) for name in GENAI},
    **{name: Flow(name, "torch", ".pt2", partial(_torchao, name)) for name in (*TORCHAO, *TORCHAO_QAT, *BFLOAT16)},
    **{name: Flow(name, "keras", ".tflite", partial(_tflite, name)) for name in (*TFLITE, *EDGE)},
}
