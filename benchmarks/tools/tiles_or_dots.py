"""How long contractions take in matrix tiles and as dot products, and whether the cost model chooses the faster form.

    python benchmarks/tools/tiles_or_dots.py mobilenet_v2.tflite resnet18.onnx
    python benchmarks/tools/tiles_or_dots.py --layers

Both forms of a network are called in turns on this machine, and each kernel is measured in place.  The columns:

- of a kernel: its pixels, channels and taps;
- tiles, dots: microseconds of its calls, the median of several rounds;
- ratio: tiles over dots;
- chosen: what the model chooses, and what that loses where it is the slower one.

`--layers` measures drawn layers, in which pixels, channels and taps vary one by one.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from qdialect.driver.tuning import measure
from qdialect.frontends.model_files import read_model
from qdialect.ir import context
from qdialect.ir._mlir import ir
from qdialect.ir.context import parse
from qdialect.lowering.cost import variants as variant_notes
from qdialect.lowering.ir.lowered import Lowered, Phase
from qdialect.lowering.pipeline.phases import lower
from qdialect.support.interface import Tunable
from qdialect.targets import host

PIXELS = ((1, 1), (1, 4), (7, 7), (14, 14), (28, 28))
CHANNELS = (4, 16, 24, 64, 160)
TAPS = (4, 16, 27, 64, 144, 576)
GROUP = 25
"""Layers of one network: few, so that their data stays in the caches."""
TILES, DOTS = "tiles", "dots"


@dataclass(frozen=True)
class Kernel:
    """One kernel in both forms."""

    title: str
    tiles: float
    """Seconds, as the other figure."""
    dots: float
    chosen: str

    @property
    def loss(self) -> float:
        """The share of the faster form's time that the choice takes longer."""
        chosen, other = (self.tiles, self.dots) if self.chosen == TILES else (self.dots, self.tiles)
        return max(chosen / other - 1, 0.0)


def compared(module: ir.Module) -> list[Kernel]:
    """The contractions of a network that there are both forms of."""
    fused = lower(module, host(), Phase.FUSED).module
    own = _written(fused, {})
    tunables = {call.tunable.kernel: call.tunable for call in own.calls if call.tunable and _has_both(call.tunable)}
    forms = [
        _written(fused, {name: form for name, one in tunables.items() if form in one.candidates})
        for form in (TILES, DOTS)
    ]
    times = [_by_kernel(form, found) for form, found in zip(forms, measure([one.module for one in forms]), strict=True)]
    return [
        Kernel(name, times[0][name], times[1][name], TILES if one.own == TILES else DOTS)
        for name, one in tunables.items()
    ]


def _has_both(tunable: Tunable) -> bool:
    return bool({TILES, DOTS} & set(tunable.candidates))


def _written(module: ir.Module, variants: Mapping[str, str]) -> Lowered:
    copy = context.copy(module)
    variant_notes.set_wanted_variants(copy, host(), variants)
    return lower(copy, host(), Phase.LINALG, clocked=True)


def _by_kernel(form: Lowered, times: NDArray[np.float64]) -> dict[str, float]:
    names = [call.tunable.kernel if call.tunable else "" for call in form.calls]
    sums = {name: times[:, [one == name for one in names]].sum(axis=1) for name in set(names)}
    return {name: float(statistics.median(map(float, own))) for name, own in sums.items()}


def drawn_networks() -> Iterator[ir.Module]:
    """Networks of drawn layers, side by side."""
    shapes = [(*pixels, channels, taps) for pixels, channels, taps in product(PIXELS, CHANNELS, TAPS)]
    for start in range(0, len(shapes), GROUP):
        yield parse(_text(shapes[start : start + GROUP], np.random.default_rng(start)))


def _text(shapes: Sequence[tuple[int, int, int, int]], random: np.random.Generator) -> str:
    types = [f"tensor<1x{height}x{width}x{taps}xui8>" for height, width, _, taps in shapes]
    results = [f"tensor<1x{height}x{width}x{channels}xui8>" for height, width, channels, _ in shapes]
    lines: list[str] = []
    for number, ((_, _, channels, taps), type_, result) in enumerate(zip(shapes, types, results, strict=True)):
        weights = f"tensor<{channels}x1x1x{taps}xi8>"
        data = random.integers(-127, 128, channels * taps).astype(np.int8).tobytes().hex()
        lines += [
            f'%w{number} = "qnn.constant"() {{value = dense<"0x{data}"> : {weights}}} : () -> {weights}',
            f'%b{number} = "qnn.constant"() {{value = dense<77> : tensor<{channels}xi32>}} : () -> '
            f"tensor<{channels}xi32>",
            f'%y{number} = "qnn.fused_conv2d"(%x{number}, %w{number}, %b{number}) {{input_scale = 0.02 : f64, '
            "input_zero_point = 128 : i64, weight_scales = array<f64: 0.5>, weight_zero_points = array<i64: 0>, "
            "strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, groups = 1 : i64, "
            f"output_scale = {0.7 * taps**0.5} : f64, output_zero_point = 128 : i64, "
            f'epilogue = [{{requantize = {{rounding = "fixed64_up"}}}}]}} : '
            f"({type_}, {weights}, tensor<{channels}xi32>) -> {result}",
        ]
    arguments = ", ".join(f"%x{number}: {type_}" for number, type_ in enumerate(types))
    values = ", ".join(f"%y{number}" for number in range(len(shapes)))
    return "\n  ".join(
        [
            f"func.func @main({arguments}) -> ({', '.join(results)}) {{",
            *lines,
            f"return {values} : {', '.join(results)}\n}}",
        ]
    )


def main() -> None:
    """Print a table, and how much is lost."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*")
    parser.add_argument("--layers", action="store_true", help="measure drawn layers")
    arguments = parser.parse_args()
    modules = [read_model(model) for model in arguments.models]
    modules += drawn_networks() if arguments.layers else []
    found: list[Kernel] = []
    for module in modules:
        for one in compared(module):
            found.append(one)
            loss = f"{100 * one.loss:5.1f} % lost" if one.loss else ""
            ratio = one.tiles / one.dots
            print(
                f"{one.title:66} {1e6 * one.tiles:9.3f} {1e6 * one.dots:9.3f} {ratio:6.2f} {one.chosen:5} {loss}",
                flush=True,
            )
    best = sum(min(one.tiles, one.dots) for one in found)
    chosen = sum(one.tiles if one.chosen == TILES else one.dots for one in found)
    worse = sum(one.loss > 0.05 for one in found)
    print(
        f"{len(found)} kernels, {worse} of them more than 5 % slower than the other form; "
        f"all together {100 * (chosen / best - 1):.1f} % lost"
    )


if __name__ == "__main__":
    main()
