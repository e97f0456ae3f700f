"""Which networks are made in which flows: the table of what the compiler is to run."""

from __future__ import annotations

from dataclasses import dataclass

from tools.zoo.flows.registry import (
    BFLOAT16,
    BLOCKS,
    DYNAMIC,
    EDGE,
    GENAI,
    NNCF,
    PT2E,
    PT2E_QAT,
    STATIC,
    TFLITE,
    TORCHAO,
    TORCHAO_QAT,
)


@dataclass(frozen=True)
class Entry:
    """A model of the zoo."""

    network: str
    flow: str

    @property
    def name(self) -> str:
        """As results and options name it."""
        return f"{self.network}:{self.flow}"


_STATIC = (
    *("resnet18", "resnet50", "resnext50", "mobilenet_v2", "mobilenet_v3_small", "mobilenet_v4_small"),
    *("efficientnet_b0", "shufflenet_v2_x1_0", "ghostnet_100", "squeezenet1_1", "densenet121", "googlenet"),
    *("convnext_tiny", "vit_tiny", "swin_t", "mobilevit_s", "levit_128s", "fastvit_t8"),
    *("yolo_decoded", "ssdlite320_head", "unet_bilinear", "unet_transpose", "deeplab_v3", "autoencoder"),
    *("keywords_1d", "lstm", "gru_bidirectional", "mlp", "bert", "bert_body", "distilbert", "gpt2", "encoder"),
    *("modernbert", "mamba", "t5", "whisper", "rt_detr", "minilm", "yolo11", "diffusion_unet"),
)
_DYNAMIC = (
    *("bert", "distilbert", "gpt2", "encoder", "lstm", "mlp", "mobilenet_v2"),
    *("modernbert", "mamba", "t5", "whisper", "rt_detr", "minilm", "diffusion_unet"),
)
_PT2E = (
    *("resnet18", "mobilenet_v2", "mobilenet_v3_small", "efficientnet_b0", "vit_tiny", "bert", "unet_bilinear"),
    *("modernbert", "t5", "whisper", "rt_detr", "minilm", "yolo11", "diffusion_unet"),
)
# X86InductorQuantizer's dynamic form quantizes dense layers only.
_PT2E_DYNAMIC = ("bert", "vit_tiny", "mlp", "modernbert", "t5", "whisper", "minilm")
_PT2E_QAT = (
    *("resnet18", "mobilenet_v2", "mobilenet_v3_small", "efficientnet_b0", "unet_bilinear", "yolo11"),
    *("vit_tiny", "bert"),
)
_TFLITE = (
    *("keras_mobilenet_v2", "keras_mobilenet_v3_small", "keras_efficientnet_b0", "keras_nasnet_mobile"),
    *("keras_convnext_tiny", "keras_transformer", "keras_unet", "keras_conv1d", "keras_keywords"),
    # TensorFlow cannot calibrate loops, so that integer recurrent networks are those without.
    *("keras2_lstm", "keras2_lstm_bidirectional", "keras_lstm_unrolled", "keras_gru_unrolled"),
)
_TFLITE_DYNAMIC = (
    *("keras_transformer", "keras_conv1d", "keras_mobilenet_v3_small", "keras_lstm", "keras_gru", "keras2_lstm"),
)
# Weights of 4 bits that a Gather reads become a product in NNCF, so that they are networks without a table of tokens.
_NNCF = (
    *("resnet18", "mobilenet_v2", "vit_tiny", "mlp", "bert", "encoder"),
    *("phi", "mixtral", "modernbert", "mamba", "t5", "whisper", "rt_detr", "minilm", "yolo11", "diffusion_unet"),
)
_EDGE = ("keras_transformer", "keras_conv1d", "keras_mobilenet_v3_small", "keras_unet", "keras_keywords")

_DECODERS = (
    *("llama", "llama_step", "qwen", "qwen_step", "gemma", "gemma_step", "phi", "phi_step", "mixtral"),
    "mixtral_step",
)
_GENAI = (
    *("llama_genai", "llama_genai_step", "qwen_genai", "qwen_genai_step", "gemma_genai", "gemma_genai_step"),
    *("phi_genai", "phi_genai_step", "gpt_oss_genai", "gpt_oss_genai_step"),
)
_BLOCKS = (*_DECODERS, "modernbert", "mamba", "t5", "whisper", "minilm", "diffusion_unet")
_TORCHAO_QAT = ("llama", "llama_step", "gemma", "phi", "bert", "vit_tiny", "encoder", "minilm")
_BFLOAT16 = (*_BLOCKS, "bert", "encoder", "vit_tiny", "rt_detr", "yolo11")

_X86, _X86_DYNAMIC, _XNNPACK = PT2E
_INTEGER, _DYNAMIC_RANGE = TFLITE


def entries() -> list[Entry]:
    """All of them, network by network, so that the float model of a network is exported once."""
    rows = [
        *((_STATIC, flow) for flow in STATIC),
        *((_DYNAMIC, flow) for flow in DYNAMIC),
        *((_PT2E, _X86), (_PT2E_DYNAMIC, _X86_DYNAMIC), (_PT2E, _XNNPACK)),
        *((_PT2E_QAT, flow) for flow in PT2E_QAT),
        *((_BLOCKS, flow) for flow in (*BLOCKS, *TORCHAO)),
        *((_GENAI, flow) for flow in GENAI),
        *((_TORCHAO_QAT, flow) for flow in TORCHAO_QAT),
        *((_NNCF, flow) for flow in NNCF),
        *((_BFLOAT16, flow) for flow in BFLOAT16),
        *((_TFLITE, _INTEGER), (_TFLITE_DYNAMIC, _DYNAMIC_RANGE)),
        *((_EDGE, flow) for flow in EDGE),
    ]
    order: dict[str, list[Entry]] = {}
    for networks, flow in rows:
        for network in networks:
            order.setdefault(network, []).append(Entry(network, flow))
    return [entry for found in order.values() for entry in found]


def chosen(networks: list[str], flows: list[str]) -> list[Entry]:
    """Those of `networks` and `flows`; an empty list stands for all."""
    return [
        entry
        for entry in entries()
        if (not networks or entry.network in networks) and (not flows or entry.flow in flows)
    ]
