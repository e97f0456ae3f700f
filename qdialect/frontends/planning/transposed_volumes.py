"""Transposed convolutions over volumes of quantized numbers.

Slice ``s * q + r`` of the full extent along the depth, with a stride of s, is
``sum over j of data[q - j] * weight[s * j + r]``: the taps j are those of windows without a stride, which become
channels of an image, and each remainder r has output channels of its own.  Its transposed convolution over images gives
all remainders beside each other, and they are interleaved.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from qdialect._mlir import ir
from qdialect.dialect import ConvTranspose2DOp
from qdialect.dialect.type_constraints import shape_of
from qdialect.frontends.common import Array, Shape
from qdialect.frontends.planning.contraction import Contraction, accumulator_attributes
from qdialect.frontends.planning.convolution import from_image
from qdialect.frontends.planning.emitter import Emitter
from qdialect.frontends.planning.movement import move
from qdialect.frontends.planning.tensors import Plan, Quantized
from qdialect.frontends.planning.volumes import DepthTaps, taps_of_depth
from qdialect.frontends.planning.weight import Weight
from qdialect.frontends.planning.window import Window
from qdialect.frontends.slices import Slice, take_slices

_Entry = TypeVar("_Entry")


@dataclass(frozen=True)
class TransposedVolumes:
    """Weights are [O, KD, KH, KW, C / groups]; `before` and `after` are cropped, `extra` elements follow the extent."""

    strides: Shape
    dilation: Shape
    before: Shape
    after: Shape
    extra: Shape
    groups: int
    output: Shape
    """[OD, OH, OW]"""

    def contraction(
        self, plan: Plan, data: Quantized, weight: Weight, bias: Array | None, name: str | None = None
    ) -> Contraction:
        """The f32 values of the result [N, O, OD, OH, OW]; raises `UnsupportedError` where there are too many taps."""
        taps = self._remainders(weight)
        moved = move(plan, name or "volumes", data, self._movement(plan, data.shape, taps.shape[1]))
        assert isinstance(moved, Quantized)
        shape = (data.shape[0], len(weight.values), *self.output)

        def accumulate(emitter: Emitter, bias: Array | None) -> ir.Value:
            return self._accumulate(emitter, moved, Weight(taps, weight.scales, weight.zero_points), bias, shape)

        return Contraction(shape, data, weight.scales, bias, accumulate, from_image(shape), name=name)

    def _movement(self, plan: Plan, shape: Shape, taps: int) -> DepthTaps:
        """Windows of `taps` slices, the first of which ends on the first slice of the data."""
        depth = shape[2]
        windows = math.ceil((self.before[0] + self.output[0]) / self.strides[0])
        after, ones = max(windows - depth, 0), (1, 1)
        window = Window((taps, *ones), (1, 1, 1), (1, 1, 1), (taps - 1, 0, 0), (after, 0, 0), (windows, *shape[3:]))
        return DepthTaps.of(shape, window, self.groups, plan.budget)

    def _remainders(self, weight: Weight) -> Array:
        """The taps of all remainders: [groups * s * O / groups, J, KH, KW, C / groups], reversed along the depth.

        Those that a remainder lacks are zero points.
        """
        outputs, kernel, *rest = weight.shape
        stride, dilation = self.strides[0], self.dilation[0]
        extent = (kernel - 1) * dilation + 1
        taps = math.ceil(extent / stride)
        zeros = np.array(weight.zero_points, weight.values.dtype).reshape(-1, 1, 1, 1, 1)
        spread = np.broadcast_to(zeros, (outputs, taps * stride, *rest)).copy()
        spread[:, :extent:dilation] = weight.values
        apart = spread.reshape(self.groups, outputs // self.groups, taps, stride, *rest)
        return apart[:, :, ::-1].transpose(0, 3, 1, 2, 4, 5, 6).reshape(-1, taps, *rest)

    def _accumulate(
        self, emitter: Emitter, data: Quantized, weight: Weight, bias: Array | None, shape: Shape
    ) -> ir.Value:
        channels = shape[1]
        scales, points = self._repeated(weight.scales, channels), self._repeated(weight.zero_points, channels)
        of_all = Weight(weight.values, scales, points)
        sums = emitter.build(
            ConvTranspose2DOp,
            emitter.last(data.values),
            emitter.constant(taps_of_depth(weight.values)),
            None if bias is None else emitter.constant(np.array(self._repeated(tuple(bias), channels), np.int32)),
            element="i32",
            **accumulator_attributes(data, of_all),
            strides=self.strides[1:],
            padding=(*self.before[1:], *self.after[1:]),
            output_padding=self.extra[1:],
            dilation=self.dilation[1:],
            groups=self.groups,
        )
        return self._interleaved(emitter, sums, shape)

    def _repeated(self, entries: tuple[_Entry, ...], channels: int) -> tuple[_Entry, ...]:
        """Those of output channels for the channels of all remainders; one for the tensor stays alone."""
        if len(entries) != channels:
            return entries
        share = channels // self.groups
        each = [entries[group * share : (group + 1) * share] for group in range(self.groups)]
        return tuple(entry for one in each for entry in one * self.strides[0])

    def _interleaved(self, emitter: Emitter, sums: ir.Value, shape: Shape) -> ir.Value:
        """[N * Q, OH, OW, groups * s * O / groups] as images [N * OD, OH, OW, O]."""
        (batch, channels, depth, *size), stride = shape, self.strides[0]
        windows = shape_of(sums.type)[0] // batch
        apart = emitter.reshape(sums, (batch, windows, *size, self.groups, stride, channels // self.groups))
        beside = apart if stride == 1 else emitter.transpose(apart, (0, 1, 5, 2, 3, 4, 6))
        whole = emitter.reshape(beside, (batch, windows * stride, *size, channels))
        slices = (Slice(0, 1, batch), Slice(self.before[0], 1, depth), *(Slice(0, 1, one) for one in (*size, channels)))
        return emitter.reshape(take_slices(emitter, whole, slices), (batch * depth, *size, channels))
