"""Transformers over token ids: BERT, DistilBERT and GPT-2 of the package transformers, and PyTorch's own encoder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from tools.zoo.networks.blocks import Called
from tools.zoo.networks.inputs import features, tokens
from tools.zoo.networks.network import Built, Network
from tools.zoo.packages import vision_package
from tools.zoo.tensors import seed

_VOCABULARY, _SMALL_VOCABULARY = 3000, 200
_LENGTH, _SMALL_LENGTH = 64, 16
_POSITIONS = 128
_HEADS = 4
# Initializers of language models are so small that every activation would be noise.
_GAIN = 2.5
SPECIAL = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}


class _Encoder(nn.Module):
    """`nn.TransformerEncoder` over embedded ids with learned positions, norms first."""

    def __init__(self, vocabulary: int, length: int, width: int = 96) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.positions = nn.Parameter(torch.randn(1, length, width) * 0.3)
        layer = nn.TransformerEncoderLayer(width, _HEADS, 256, batch_first=True, activation="gelu", norm_first=True)
        self.body = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.last = nn.Linear(width, 8)

    def forward(self, ids: Tensor) -> Tensor:
        return self.last(self.body(self.embedding(ids) + self.positions).mean(1))


def _sizes(is_small: bool) -> tuple[int, int, int]:
    """Width, vocabulary and length."""
    return (64, _SMALL_VOCABULARY, _SMALL_LENGTH) if is_small else (128, _VOCABULARY, _LENGTH)


def spread(model: nn.Module) -> nn.Module:
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() >= 2:
                parameter.mul_(_GAIN)
    return model


def eager(configuration: Any) -> Any:
    """The attention that every exporter takes."""
    configuration._attn_implementation = "eager"
    return configuration


def transformer(kind: str, configuration: str, fields: Mapping[str, Any], **options: Any) -> nn.Module:
    """A model of the package transformers, spread."""
    seed()
    package = vision_package("transformers")
    return spread(getattr(package, kind)(eager(getattr(package, configuration)(**fields)), **options))


def _of_bert(kind: str, width: int, heads: int, vocabulary: int, **options: Any) -> nn.Module:
    sizes = {"hidden_size": width, "intermediate_size": 4 * width, "num_hidden_layers": 2, "num_attention_heads": heads}
    fields = {**sizes, "vocab_size": vocabulary, "max_position_embeddings": _POSITIONS}
    return transformer(kind, "BertConfig", fields, **options)


def _bert(is_small: bool) -> Built:
    width, vocabulary, length = _sizes(is_small)
    model = _of_bert("BertForSequenceClassification", width, _HEADS, vocabulary)
    return Built(Called(model, _masked_logits).eval(), tokens(vocabulary, length, masked=True))


def _bert_body(is_small: bool) -> Built:
    """An encoder on embeddings, as examples of vendors cut it."""
    width, vocabulary, length = _sizes(is_small)
    model = _of_bert("BertForSequenceClassification", width, _HEADS, vocabulary)

    def call(model: Any, embedded: Tensor) -> Tensor:
        return model(inputs_embeds=embedded).logits

    return Built(Called(model, call).eval(), features(length, width))


def _distilbert(is_small: bool) -> Built:
    width, vocabulary, length = _sizes(is_small)
    fields = {"dim": width, "hidden_dim": 4 * width, "n_layers": 2, "n_heads": _HEADS, "vocab_size": vocabulary}
    fields["max_position_embeddings"] = _POSITIONS
    model = transformer("DistilBertForSequenceClassification", "DistilBertConfig", fields)
    return Built(Called(model, _masked_logits).eval(), tokens(vocabulary, length, masked=True))


def _gpt2(is_small: bool) -> Built:
    width, vocabulary, length = _sizes(is_small)
    fields = {"n_embd": width, "n_layer": 2, "n_head": _HEADS, "vocab_size": vocabulary, "n_positions": _POSITIONS}
    model = transformer("GPT2LMHeadModel", "GPT2Config", {**fields, "use_cache": False})
    return Built(Called(model, _logits).eval(), tokens(vocabulary, length, masked=False))


def _masked_logits(model: Any, ids: Tensor, mask: Tensor) -> Tensor:
    return model(input_ids=ids, attention_mask=mask).logits


def _logits(model: Any, ids: Tensor) -> Tensor:
    return model(input_ids=ids).logits


def _encoder(is_small: bool) -> Built:
    seed()
    _, vocabulary, length = _sizes(is_small)
    return Built(_Encoder(vocabulary, length).eval(), tokens(vocabulary, length, masked=False))


def _minilm(is_small: bool) -> Built:
    """A sentence as a vector of length 1: the mean over the tokens that a mask shows."""
    width, vocabulary, length = (96, _SMALL_VOCABULARY, _SMALL_LENGTH) if is_small else (384, _VOCABULARY, _LENGTH)
    model = _of_bert("BertModel", width, 12, vocabulary, add_pooling_layer=False)

    def call(model: Any, ids: Tensor, mask: Tensor) -> Tensor:
        shown = mask.unsqueeze(-1).float()
        total = (model(input_ids=ids, attention_mask=mask).last_hidden_state * shown).sum(1)
        return nn.functional.normalize(total / shown.sum(1).clamp(min=1e-9), dim=1)

    return Built(Called(model, call).eval(), tokens(vocabulary, length, masked=True))


def _modernbert(is_small: bool) -> Built:
    """Rotated positions, gates, and windows in two of three layers."""
    width, vocabulary, length = _sizes(is_small)
    special = {**SPECIAL, "cls_token_id": 1, "sep_token_id": 2}
    sizes = {"hidden_size": width, "intermediate_size": width * 3 // 2, "num_attention_heads": _HEADS}
    lengths = {"num_hidden_layers": 3, "max_position_embeddings": _POSITIONS, "local_attention": 8}
    fields = {**special, **sizes, **lengths, "vocab_size": vocabulary}
    model = transformer("ModernBertModel", "ModernBertConfig", fields)

    def call(model: Any, ids: Tensor) -> Tensor:
        return model(input_ids=ids, attention_mask=torch.ones_like(ids)).last_hidden_state

    return Built(Called(model, call).eval(), tokens(vocabulary, length, masked=False))


def _mamba(is_small: bool) -> Built:
    """A scan of states, step by step."""
    width, vocabulary, length = _sizes(is_small)
    sizes = {"hidden_size": width, "state_size": 8, "num_hidden_layers": 2, "vocab_size": vocabulary}
    model = transformer("MambaForCausalLM", "MambaConfig", {**sizes, "use_cache": False})
    return Built(Called(model, _logits).eval(), tokens(vocabulary, length, masked=False))


def _t5(is_small: bool) -> Built:
    """Encoder and decoder, with biases by distance."""
    width, vocabulary, length = _sizes(is_small)
    sizes = {"d_model": width, "d_kv": width // _HEADS, "d_ff": 2 * width, "num_layers": 2, "num_heads": _HEADS}
    kinds = {"feed_forward_proj": "gated-gelu", "decoder_start_token_id": 0, "use_cache": False}
    fields = {**sizes, **kinds, "vocab_size": vocabulary}
    model = transformer("T5ForConditionalGeneration", "T5Config", fields)

    def call(model: Any, ids: Tensor) -> Tensor:
        return model(input_ids=ids, decoder_input_ids=ids[:, : length // 2], use_cache=False).logits

    return Built(Called(model, call).eval(), tokens(vocabulary, length, masked=False))


def _whisper(is_small: bool) -> Built:
    """Encoder and decoder of features of sound."""
    width, vocabulary, length = _sizes(is_small)
    of_encoder = {"encoder_layers": 1, "encoder_attention_heads": _HEADS, "encoder_ffn_dim": 2 * width}
    of_decoder = {"decoder_layers": 2, "decoder_attention_heads": _HEADS, "decoder_ffn_dim": 2 * width}
    sizes = {"d_model": width, "vocab_size": vocabulary, "max_source_positions": length, "num_mel_bins": 16}
    fields = {**SPECIAL, **of_encoder, **of_decoder, **sizes, "use_cache": False}
    model = transformer("WhisperModel", "WhisperConfig", fields)
    prompt = torch.arange(length // 2)

    def call(model: Any, sound: Tensor) -> Tensor:
        ids = prompt.expand(sound.shape[0], -1)
        return model(input_features=sound, decoder_input_ids=ids, use_cache=False).last_hidden_state

    return Built(Called(model, call).eval(), features(16, 2 * length))


NETWORKS = (
    Network("bert", _bert),
    Network("bert_body", _bert_body),
    Network("distilbert", _distilbert),
    Network("minilm", _minilm),
    Network("gpt2", _gpt2),
    Network("encoder", _encoder),
    Network("modernbert", _modernbert),
    Network("mamba", _mamba),
    Network("t5", _t5),
    Network("whisper", _whisper),
)
