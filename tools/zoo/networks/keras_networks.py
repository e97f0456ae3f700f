"""Networks of Keras: applications, a transformer, recurrent networks, a U-Net, 1-D and keyword convolutions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from tools.zoo.networks.inputs import features, images
from tools.zoo.networks.keras_settle import settle
from tools.zoo.networks.network import Array, Built, Draw, Network
from tools.zoo.packages import imported

# Keras' applications take pixels; their first layers scale them.
_MEAN, _SPREAD = 120.0, 60.0


def _pixels(size: int) -> Draw:
    drawn = images(size, channels_last=True)

    def draw(batch: int, seed: int) -> tuple[Array, ...]:
        return (np.clip(drawn(batch, seed)[0] * _SPREAD + _MEAN, 0, 255).astype(np.float32),)

    return draw


def _layers() -> Any:
    imported("keras").utils.set_random_seed(0)
    return imported("keras").layers


def _application(name: str, size: int, small: int, is_small: bool) -> Built:
    _layers()
    size = small if is_small else size
    create = getattr(imported("keras").applications, name)
    return settle(create(weights=None, input_shape=(size, size, 3), classifier_activation=None), _pixels(size))


def _transformer(is_small: bool) -> Built:
    layers = _layers()
    length, width = (16, 32) if is_small else (48, 64)
    inputs = found = layers.Input((length, width))
    for _ in range(2):
        normed = layers.LayerNormalization()(found)
        found = layers.Add()([found, layers.MultiHeadAttention(4, width // 4)(normed, normed)])
        hidden = layers.Dense(2 * width, activation="gelu")(layers.LayerNormalization()(found))
        found = layers.Add()([found, layers.Dense(width)(hidden)])
    scores = layers.Dense(10, activation="softmax")(layers.GlobalAveragePooling1D()(found))
    return settle(imported("keras").Model(inputs, scores), features(length, width))


def _recurrent(kind: str, unroll: bool, is_small: bool) -> Built:
    layers = _layers()
    length = 8 if is_small else 20
    inputs = layers.Input((length, 40))
    found = getattr(layers, kind)(48, return_sequences=True, unroll=unroll)(inputs)
    scores = layers.Dense(12, activation="softmax")(layers.GlobalAveragePooling1D()(found))
    return settle(imported("keras").Model(inputs, scores), features(length, 40))


def _keywords(is_small: bool) -> Built:
    del is_small
    layers = _layers()
    inputs = layers.Input((49, 10, 1))
    found = _norm_relu(layers, layers.Conv2D(64, (10, 4), 2, padding="same")(inputs))
    for _ in range(4):
        found = _norm_relu(layers, layers.DepthwiseConv2D(3, padding="same")(found))
        found = _norm_relu(layers, layers.Conv2D(64, 1)(found))
    scores = layers.Dense(12, activation="softmax")(layers.Flatten()(layers.AveragePooling2D((25, 5))(found)))
    return settle(imported("keras").Model(inputs, scores), features(49, 10, 1))


def _norm_relu(layers: Any, found: Any) -> Any:
    return layers.Activation("relu")(layers.BatchNormalization()(found))


def _convolutions_1d(_: bool) -> Built:
    layers = _layers()
    inputs = found = layers.Input((128, 9))
    for filters, dilation in ((32, 1), (64, 2), (64, 4)):
        found = layers.Conv1D(filters, 5, padding="causal", dilation_rate=dilation)(found)
        found = layers.PReLU(shared_axes=[1])(layers.BatchNormalization()(found))
    found = layers.SeparableConv1D(64, 3, activation="elu")(found)
    scores = layers.Dense(6)(layers.GlobalMaxPooling1D()(found))
    return settle(imported("keras").Model(inputs, scores), features(128, 9))


def _unet(is_small: bool) -> Built:
    layers = _layers()
    size = 32 if is_small else 96
    inputs = layers.Input((size, size, 3))
    first = _leaky_block(layers, inputs, 16)
    second = _leaky_block(layers, layers.MaxPooling2D()(first), 32)
    third = _leaky_block(layers, layers.MaxPooling2D()(second), 64)
    found = _leaky_block(layers, layers.Concatenate()([layers.Conv2DTranspose(32, 2, 2)(third), second]), 32)
    enlarged = layers.UpSampling2D(interpolation="bilinear")(found)
    found = _leaky_block(layers, layers.Concatenate()([enlarged, first]), 16)
    mask = layers.Conv2D(1, 1, activation="sigmoid")(found)
    return settle(imported("keras").Model(inputs, mask), images(size, channels_last=True))


def _leaky_block(layers: Any, found: Any, filters: int) -> Any:
    for _ in range(2):
        found = layers.BatchNormalization()(layers.Conv2D(filters, 3, padding="same", use_bias=False)(found))
        found = layers.LeakyReLU(negative_slope=0.1)(found)
    return found


_BUILDS: dict[str, Callable[[bool], Built]] = {
    "keras_mobilenet_v2": partial(_application, "MobileNetV2", 224, 64),
    "keras_mobilenet_v3_small": partial(_application, "MobileNetV3Small", 224, 64),
    "keras_efficientnet_b0": partial(_application, "EfficientNetB0", 224, 64),
    "keras_nasnet_mobile": partial(_application, "NASNetMobile", 224, 64),
    "keras_convnext_tiny": partial(_application, "ConvNeXtTiny", 160, 64),
    "keras_transformer": _transformer,
    "keras_lstm": partial(_recurrent, "LSTM", False),
    "keras_lstm_unrolled": partial(_recurrent, "LSTM", True),
    "keras_gru": partial(_recurrent, "GRU", False),
    "keras_gru_unrolled": partial(_recurrent, "GRU", True),
    "keras_unet": _unet,
    "keras_conv1d": _convolutions_1d,
    "keras_keywords": _keywords,
}

KERAS_NETWORKS = {name: Network(name, build) for name, build in _BUILDS.items()}
