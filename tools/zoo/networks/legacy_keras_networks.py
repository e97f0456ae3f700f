"""LSTMs of Keras 2, which marks them so that the converter writes one operator; a Keras 3 layer becomes a loop."""

from __future__ import annotations

from functools import partial

from tools.zoo.networks.inputs import features
from tools.zoo.networks.keras_settle import settle
from tools.zoo.networks.network import Built, Network
from tools.zoo.packages import imported

_FEATURES, _UNITS = 40, 48


def _recurrent(bidirectional: bool, is_small: bool) -> Built:
    keras = imported("tf_keras")
    keras.utils.set_random_seed(0)
    layers = keras.layers
    length = 8 if is_small else 20
    # The converter marks the layer only where the batch is known.
    inputs = layers.Input((length, _FEATURES), batch_size=1)
    body = layers.LSTM(_UNITS, return_sequences=True)
    found = (layers.Bidirectional(body) if bidirectional else body)(inputs)
    scores = layers.Dense(12, activation="softmax")(layers.GlobalAveragePooling1D()(found))
    return settle(keras.Model(inputs, scores), features(length, _FEATURES))


LEGACY_KERAS_NETWORKS = {
    name: Network(name, partial(_recurrent, bidirectional))
    for name, bidirectional in (("keras2_lstm", False), ("keras2_lstm_bidirectional", True))
}
