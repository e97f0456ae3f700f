"""Transformers over token ids: BERT, DistilBERT and GPT-2 of the package transformers, and PyTorch's own encoder."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

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


class _Masked(nn.Module):
    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        return self.model(input_ids=ids, attention_mask=mask).logits


class _Unmasked(nn.Module):
    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids: Tensor) -> Tensor:
        return self.model(input_ids=ids).logits


class _Body(nn.Module):
    """An encoder on embeddings, as examples of vendors cut it."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, embedded: Tensor) -> Tensor:
        return self.model(inputs_embeds=embedded).logits


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


def _bert_model(is_small: bool) -> nn.Module:
    seed()
    package = vision_package("transformers")
    width, vocabulary, _ = _sizes(is_small)
    configuration = package.BertConfig(
        hidden_size=width,
        num_hidden_layers=2,
        num_attention_heads=_HEADS,
        intermediate_size=4 * width,
        vocab_size=vocabulary,
        max_position_embeddings=_POSITIONS,
    )
    return spread(package.BertForSequenceClassification(eager(configuration)))


def _bert(is_small: bool) -> Built:
    _, vocabulary, length = _sizes(is_small)
    return Built(_Masked(_bert_model(is_small)).eval(), tokens(vocabulary, length, masked=True))


def _bert_body(is_small: bool) -> Built:
    width, _, length = _sizes(is_small)
    return Built(_Body(_bert_model(is_small)).eval(), features(length, width))


def _distilbert(is_small: bool) -> Built:
    seed()
    package = vision_package("transformers")
    width, vocabulary, length = _sizes(is_small)
    configuration = package.DistilBertConfig(
        dim=width,
        n_layers=2,
        n_heads=_HEADS,
        hidden_dim=4 * width,
        vocab_size=vocabulary,
        max_position_embeddings=_POSITIONS,
    )
    model = spread(package.DistilBertForSequenceClassification(eager(configuration)))
    return Built(_Masked(model).eval(), tokens(vocabulary, length, masked=True))


def _gpt2(is_small: bool) -> Built:
    seed()
    package = vision_package("transformers")
    width, vocabulary, length = _sizes(is_small)
    configuration = package.GPT2Config(
        n_embd=width, n_layer=2, n_head=_HEADS, vocab_size=vocabulary, n_positions=_POSITIONS, use_cache=False
    )
    model = spread(package.GPT2LMHeadModel(eager(configuration)))
    return Built(_Unmasked(model).eval(), tokens(vocabulary, length, masked=False))


def _encoder(is_small: bool) -> Built:
    seed()
    _, vocabulary, length = _sizes(is_small)
    return Built(_Encoder(vocabulary, length).eval(), tokens(vocabulary, length, masked=False))


def _minilm(is_small: bool) -> Built:
    """A sentence as a vector of length 1: the mean over the tokens that a mask shows."""
    seed()
    package = vision_package("transformers")
    width, vocabulary, length = (96, _SMALL_VOCABULARY, _SMALL_LENGTH) if is_small else (384, _VOCABULARY, _LENGTH)
    configuration = package.BertConfig(
        hidden_size=width,
        num_hidden_layers=2,
        num_attention_heads=12,
        intermediate_size=4 * width,
        vocab_size=vocabulary,
        max_position_embeddings=_POSITIONS,
    )
    model = spread(package.BertModel(eager(configuration), add_pooling_layer=False))

    def call(model: Any, ids: Tensor, mask: Tensor) -> Tensor:
        shown = mask.unsqueeze(-1).float()
        total = (model(input_ids=ids, attention_mask=mask).last_hidden_state * shown).sum(1)
        return nn.functional.normalize(total / shown.sum(1).clamp(min=1e-9), dim=1)

    return Built(_Called(model, call).eval(), tokens(vocabulary, length, masked=True))


class _Called(nn.Module):
    """A part of a model by a function of it and the inputs."""

    def __init__(self, model: nn.Module, call: Callable[..., Tensor]) -> None:
        super().__init__()
        self.model = model
        self.call = call

    def forward(self, *given: Tensor) -> Tensor:
        return self.call(self.model, *given)


_SPECIAL = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}


def _modernbert(is_small: bool) -> Built:
    """Rotated positions, gates, and windows in two of three layers."""
    seed()
    package = vision_package("transformers")
    width, vocabulary, length = _sizes(is_small)
    configuration = package.ModernBertConfig(
        **{**_SPECIAL, "cls_token_id": 1, "sep_token_id": 2},
        hidden_size=width,
        intermediate_size=width * 3 // 2,
        num_hidden_layers=3,
        num_attention_heads=_HEADS,
        vocab_size=vocabulary,
        max_position_embeddings=_POSITIONS,
        local_attention=8,
    )
    model = spread(package.ModernBertModel(eager(configuration)))

    def call(model: Any, ids: Tensor) -> Tensor:
        return model(input_ids=ids, attention_mask=torch.ones_like(ids)).last_hidden_state

    return Built(_Called(model, call).eval(), tokens(vocabulary, length, masked=False))


def _mamba(is_small: bool) -> Built:
    """A scan of states, step by step."""
    seed()
    package = vision_package("transformers")
    width, vocabulary, length = _sizes(is_small)
    configuration = package.MambaConfig(
        hidden_size=width, state_size=8, num_hidden_layers=2, vocab_size=vocabulary, use_cache=False
    )
    model = spread(package.MambaForCausalLM(configuration))
    return Built(_Unmasked(model).eval(), tokens(vocabulary, length, masked=False))


def _t5(is_small: bool) -> Built:
    """Encoder and decoder, with biases by distance."""
    seed()
    package = vision_package("transformers")
    width, vocabulary, length = _sizes(is_small)
    configuration = package.T5Config(
        vocab_size=vocabulary,
        d_model=width,
        d_kv=width // _HEADS,
        d_ff=2 * width,
        num_layers=2,
        num_heads=_HEADS,
        feed_forward_proj="gated-gelu",
        decoder_start_token_id=0,
        use_cache=False,
    )
    model = spread(package.T5ForConditionalGeneration(eager(configuration)))

    def call(model: Any, ids: Tensor) -> Tensor:
        return model(input_ids=ids, decoder_input_ids=ids[:, : length // 2], use_cache=False).logits

    return Built(_Called(model, call).eval(), tokens(vocabulary, length, masked=False))


def _whisper(is_small: bool) -> Built:
    """Encoder and decoder of features of sound."""
    seed()
    package = vision_package("transformers")
    width, vocabulary, length = _sizes(is_small)
    configuration = package.WhisperConfig(
        **_SPECIAL,
        vocab_size=vocabulary,
        d_model=width,
        encoder_layers=1,
        decoder_layers=2,
        encoder_attention_heads=_HEADS,
        decoder_attention_heads=_HEADS,
        encoder_ffn_dim=2 * width,
        decoder_ffn_dim=2 * width,
        max_source_positions=length,
        num_mel_bins=16,
        use_cache=False,
    )
    model = spread(package.WhisperModel(eager(configuration)))
    prompt = torch.arange(length // 2)

    def call(model: Any, sound: Tensor) -> Tensor:
        ids = prompt.expand(sound.shape[0], -1)
        return model(input_features=sound, decoder_input_ids=ids, use_cache=False).last_hidden_state

    return Built(_Called(model, call).eval(), features(16, 2 * length))


NETWORKS = tuple(
    Network(name, partial(build))
    for name, build in (
        ("bert", _bert),
        ("bert_body", _bert_body),
        ("distilbert", _distilbert),
        ("minilm", _minilm),
        ("gpt2", _gpt2),
        ("encoder", _encoder),
        ("modernbert", _modernbert),
        ("mamba", _mamba),
        ("t5", _t5),
        ("whisper", _whisper),
    )
)
