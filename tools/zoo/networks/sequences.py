"""Networks over features in time: a keyword network of 1-D convolutions, recurrent networks, a perceptron."""

from __future__ import annotations

from functools import partial

from torch import Tensor, nn
from torch.nn import functional

from tools.zoo.networks.inputs import features
from tools.zoo.networks.network import Built, Network
from tools.zoo.networks.settle import settle
from tools.zoo.tensors import seed

_MELS = 40


class _Keywords(nn.Module):
    """A stem, residual depthwise-separable blocks with dilation, a mean over time."""

    def __init__(self, channels: int = 64, classes: int = 12) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv1d(_MELS, channels, 5, 2, 2), nn.BatchNorm1d(channels), nn.ReLU())
        self.blocks = nn.ModuleList(_separable(channels, dilation) for dilation in (1, 1, 2, 2))
        self.last = nn.Linear(channels, classes)

    def forward(self, sound: Tensor) -> Tensor:
        found: Tensor = self.stem(sound)
        for block in self.blocks:
            found = found + block(found)
        return self.last(found.mean(-1))


def _separable(channels: int, dilation: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv1d(channels, channels, 9, 1, 4 * dilation, dilation=dilation, groups=channels),
        nn.Conv1d(channels, channels, 1),
        nn.BatchNorm1d(channels),
        nn.ReLU(),
    )


class _Recurrent(nn.Module):
    """A convolution over time, recurrent layers, a dense layer at each position."""

    def __init__(self, kind: type[nn.LSTM] | type[nn.GRU], layers: int, *, bidirectional: bool) -> None:
        super().__init__()
        hidden = 96
        self.first = nn.Conv1d(_MELS, 64, 3, 2, 1)
        self.body = kind(64, hidden, layers, batch_first=True, bidirectional=bidirectional)
        self.last = nn.Linear(hidden * (2 if bidirectional else 1), 29)

    def forward(self, sound: Tensor) -> Tensor:
        found, _ = self.body(functional.relu(self.first(sound)).transpose(1, 2))
        return self.last(found)


class _Perceptron(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 256), nn.GELU(), nn.LayerNorm(256), nn.Linear(256, 10)
        )

    def forward(self, values: Tensor) -> Tensor:
        return self.body(values)


def _keywords(is_small: bool) -> Built:
    seed()
    return settle(_Keywords(), features(_MELS, 32 if is_small else 100))


def _recurrent(kind: type[nn.LSTM] | type[nn.GRU], layers: int, bidirectional: bool, is_small: bool) -> Built:
    seed()
    model = _Recurrent(kind, layers, bidirectional=bidirectional)
    return settle(model, features(_MELS, 20 if is_small else 100))


def _perceptron(_: bool) -> Built:
    seed()
    return settle(_Perceptron(), features(784))


NETWORKS = (
    Network("keywords_1d", _keywords),
    Network("lstm", partial(_recurrent, nn.LSTM, 2, False)),
    Network("gru_bidirectional", partial(_recurrent, nn.GRU, 1, True)),
    Network("mlp", _perceptron),
)
