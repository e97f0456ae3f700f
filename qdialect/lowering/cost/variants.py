"""Other ways to write a kernel than the one the cost model chooses, and which of them a module is to get."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from qdialect.ir._mlir import ir
from qdialect.lowering.cost.register_tiles import Layout, TileModel
from qdialect.lowering.cost.strategy import ChannelBlock, DepthwiseTiles, Strategy, TiledOperand, row_tiles
from qdialect.lowering.ir import lowered
from qdialect.lowering.ir.lowered import error_at_module
from qdialect.targets import Target

# Other ways to write a kernel than the one that the cost model chooses, each by its name.
#
#   "R rows x V vectors"   contraction: the register tile, and narrower ones with as many accumulators
#   "words", "pairs"       contraction: products of words, or of bytes summed in pairs
#   "dots", "tiles"        contraction: dot products, or matrix tiles
#   "pixels inside",       contraction: a tile of channels meets all pixels before the next one,
#   "channels inside"      or a tile of pixels all channels
#   "R rows", "taps"       depthwise: rows of a tile of dot products, or one tap after the other
#
# Candidates are what the model finds best: register tiles by the cycles of all tiles together, with smaller ones for
# the pixels and channels that are left over, which the model's own choice does not look at.

_MAX_TILES = 3
"""Register tiles that are tried."""
_WORDS, _PAIRS, _DOTS, _TILES, _TAPS = "words", "pairs", "dots", "tiles", "taps"
_LOOP_ORDERS = {True: "pixels inside", False: "channels inside"}
_TILE = re.compile(r"(\d+) rows x (\d+) vectors", re.ASCII)
_ROWS = re.compile(r"(\d+) rows", re.ASCII)
# Dot products that take so long that tiles are always faster.
_NO_DOTS = 1e-12

_Plan = tuple[tuple[ChannelBlock, tuple[tuple[tuple[int, int, int], ...], ...]], ...]


@dataclass(frozen=True)
class ContractionShape:
    """The parameters of the choice of register tiles."""

    lanes: int
    """Channels, with those that fill up the last vector."""
    taps: int
    """Bytes of a channel's weights."""
    pixels: tuple[int, ...]
    """The extents of the axes of pixels."""
    layout: Layout
    """The model's choice."""
    has_tiles: bool
    """Whether the model multiplies matrix tiles."""
    data_bytes: int
    parameters: int
    """Numbers of each channel that the epilogue reads."""
    rows: int | None
    """For which tiles are chosen; None if that is not known."""


def varied(strategy: Strategy, name: str) -> Strategy:
    """`strategy` with one variant, of a name that a list of candidates has."""
    tile, rows = _TILE.fullmatch(name), _ROWS.fullmatch(name)
    if tile:
        return replace(strategy, fixed_tile=(int(tile[1]), int(tile[2])))
    if rows:
        return _with_rows(strategy, int(rows[1]))
    if name in _LOOP_ORDERS.values():
        return replace(strategy, fixed_weight_stationary=name == _LOOP_ORDERS[True])
    machine = strategy.matrix_machine
    return {
        _WORDS: replace(strategy, others=tuple(one for one in strategy.others if one is not Layout.PAIRS)),
        _PAIRS: replace(strategy, fixed_pairs=True),
        _DOTS: replace(strategy, matrix_machine=None),
        _TILES: replace(strategy, matrix_machine=replace(machine, dot_products=_NO_DOTS) if machine else None),
        _TAPS: _with_rows(strategy, 0),
    }[name]


def _with_rows(strategy: Strategy, rows: int) -> Strategy:
    return replace(strategy, depthwise=replace(strategy.depthwise, interleaved_rows=rows))


def contraction_candidates(strategy: Strategy, shape: ContractionShape) -> tuple[str, list[str]]:
    """The model's choice for a contraction, and the variants of it, the best first."""
    model, in_pairs = strategy.model_of(shape.layout), shape.layout is Layout.PAIRS
    if model is None:
        return "", []
    is_float = shape.layout is Layout.FLOATS
    others = [_DOTS if shape.has_tiles else _TILES] if strategy.matrix_machine and not is_float else []
    if shape.has_tiles:
        return _TILES, others
    others += [_WORDS if in_pairs else _PAIRS] if Layout.PAIRS in strategy.others and not is_float else []
    blocks = _blocks(strategy, shape)
    tiles = list(_register_tiles(strategy, model, shape))[:_MAX_TILES]
    own = f"{blocks[0].rows} rows x {blocks[0].vectors} vectors"
    return own, [*(tile for tile in tiles if tile != own), *others, *_loop_orders(strategy, shape)]


def depthwise_candidates(tiles: DepthwiseTiles, rows: int) -> tuple[str, list[str]]:
    """The same of a depthwise convolution with `rows` rows of results."""
    most = min(tiles.interleaved_rows, rows)
    if not most:
        return _TAPS, []
    return f"{most} rows", [*(f"{fewer} rows" for fewer in range(most - 1, 0, -1)), _TAPS]


def _blocks(strategy: Strategy, shape: ContractionShape) -> list[ChannelBlock]:
    return strategy.channel_blocks(shape.lanes, shape.taps, shape.layout, shape.parameters, shape.rows)


def _register_tiles(strategy: Strategy, model: TileModel, shape: ContractionShape) -> Iterator[str]:
    """Names of tiles, those of the fewest cycles first; of several that cut the work alike, one."""
    size = shape.lanes * shape.taps
    seen = {_plan(strategy, shape)}
    found: list[tuple[float, int, str]] = []
    for rows, vectors in model.possible_tiles():
        if (vectors - 1) * model.lanes >= shape.lanes or rows > 2 * math.prod(shape.pixels):
            continue
        name = f"{rows} rows x {vectors} vectors"
        plan = _plan(varied(strategy, name), shape)
        if plan not in seen:
            seen.add(plan)
            found.append((_cycles(model, plan, size), len(found), name))
    return (name for _, _, name in sorted(found))


def _plan(strategy: Strategy, shape: ContractionShape) -> _Plan:
    """The blocks of channels, and the tiles of pixels of each."""
    blocks = _blocks(strategy, shape)
    tiles = [row_tiles(shape.pixels, block.rows, strategy.least_rows(block)) for block in blocks]
    return tuple((block, tuple(map(tuple, parts))) for block, parts in zip(blocks, tiles, strict=True))


def _cycles(model: TileModel, plan: _Plan, size: int) -> float:
    """Cycles of all tiles for a K group, with weights of `size` bytes."""
    total = 0.0
    for block, axes in plan:
        kinds = [(1, 1)]
        for parts in axes:
            kinds = [(rows * tile, count * (extent // tile)) for rows, count in kinds for _, extent, tile in parts]
        for rows, count in kinds:
            total += block.tiles * count * model.cycles(rows, block.vectors, size)
    return total


def _loop_orders(strategy: Strategy, shape: ContractionShape) -> list[str]:
    """The other order of loops, where operands do not stay in the first level."""
    blocks = _blocks(strategy, shape)
    weights = TiledOperand(shape.lanes * shape.taps, sum(block.tiles for block in blocks))
    data = TiledOperand(shape.data_bytes, -(-math.prod(shape.pixels) // blocks[0].rows))
    if strategy.model is None or max(weights.size, data.size) <= strategy.model.machine.l1_bytes:
        return []
    inside = strategy.is_weight_stationary(weights, data)
    return [_LOOP_ORDERS[not inside]] if min(weights.tiles, data.tiles) > 1 else []


# Which variants of its kernels a module is to get: the attribute `qnn.tuning`, which `--tune` writes.
#
# It names the target that kernels were measured for, and the variants that were faster than what the cost model chose:
#
#   qnn.tuning = {target = "avx512vbmi", variants = {"3136 pixels ..." = "6 rows x 4 vectors"}}
#
# A module that is lowered for another target gets what the model chooses.

TUNING = "qnn.tuning"
_WANTED = '{target = "...", variants = {"KERNEL" = "VARIANT", ...}}'


def wanted_variants(module: ir.Module, target: Target) -> Mapping[str, str] | None:
    """The variants by kernel that `module` is to get on `target`; None where it was not tuned.

    Raises `CompileError` for an attribute that is not what `set_wanted_variants` writes.
    """
    attributes = module.operation.attributes
    if TUNING not in attributes:
        return None
    attribute = attributes[TUNING]
    found = _wanted_tree(attribute)
    if found is None:
        raise error_at_module(module, f"{TUNING} must be {_WANTED}, but got {attribute}")
    name, variants = found
    return variants if name == target.name else None


def set_wanted_variants(module: ir.Module, target: Target, variants: Mapping[str, str]) -> None:
    """Say on `module` which variants its kernels are to get on `target`."""
    with module.context, ir.Location.unknown():
        module.operation.attributes[TUNING] = lowered.attribute_of({"target": target.name, "variants": variants})


def _wanted_tree(attribute: ir.Attribute) -> tuple[str, dict[str, str]] | None:
    if (
        not isinstance(attribute, ir.DictAttr)
        or len(attribute) != 2
        or not {"target", "variants"} <= {attribute[i].name for i in range(len(attribute))}
    ):
        return None
    target, variants = attribute["target"], attribute["variants"]
    if not isinstance(target, ir.StringAttr) or not isinstance(variants, ir.DictAttr):
        return None
    entries = [variants[i] for i in range(len(variants))]
    if not all(isinstance(entry.attr, ir.StringAttr) for entry in entries):
        return None
    return target.value, {entry.name: ir.StringAttr(entry.attr).value for entry in entries}
