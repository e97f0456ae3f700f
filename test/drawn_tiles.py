"""Random programs of phase `vector` on tiles of 64 lanes, whose bytes are unpacked and stored as they lie."""

import numpy as np
from drawn_vector import Draw, Main, Program, generator, rare, vector
from hypothesis import strategies as st

_TILE = [2, 2, 2, 2, 4]
_LANES = "abcde"
_LAYOUTS = [[8, 4, 32, 16, 1], [8, 4, 24, 12, 1], [32, 16, 8, 4, 1], [8, 4, 80, 16, 1], [4, 64, 16, 8, 1]]


@st.composite
def tiles(draw: Draw) -> Program:
    """Contractions of tiles of 64 lanes along taps: pixels and rows at any stride, weights in K groups or not."""
    rng, main = generator(draw), Main()
    extents = {
        "p": draw(st.integers(1, 3)),
        "k": draw(st.integers(1, 2)),
        "t": 5 if rare(draw) else draw(st.integers(1, 4)),
    }
    extents.update(zip(_LANES, _TILE, strict=True))
    lanes = [4] * 5 if rare(draw) else draw(st.sampled_from(_LAYOUTS))
    data_loops = [*draw(st.permutations("pkt")), *_LANES]
    steps = {"p": draw(st.sampled_from([64, 16, 8])), "k": draw(st.sampled_from([64, 16, 100])), "t": 8}
    steps.update(zip(_LANES, lanes, strict=True))
    data = _strided(main, rng, [extents[loop] for loop in data_loops], [steps[loop] for loop in data_loops])
    weight_loops = ["k", *_LANES, "t"]
    if rare(draw):
        weight_loops = ["k", "t", *_LANES]
    k_groups = {"k": 256 + draw(st.sampled_from([0, 64])), "t": 1}
    k_groups.update(zip(_LANES, [128, 64, 32, 16, 5 if rare(draw) else 4], strict=True))
    rest = 0 if rare(draw) else 3
    sizes = [extents[loop] for loop in weight_loops]
    weights = _strided(main, rng, sizes, [k_groups[loop] for loop in weight_loops], rest)
    result = ["p", *_LANES]
    shape = [extents[loop] for loop in result]
    sums = main.buffer(rng.integers(-1000, 1000, shape, np.int32))
    start = main.read(sums, shape, [0] * len(shape))
    wide: list[tuple[str, str]] = []
    for value, loops, sign in ((data, data_loops, "extui"), (weights, weight_loops, "extsi")):
        sizes = [extents[loop] for loop in loops]
        wide.append(
            (main.op(f"arith.{sign} {value} : {vector(sizes, 'i8')} to {vector(sizes, 'i32')}"), vector(sizes, "i32"))
        )
    order = "pkt" + _LANES
    texts = ", ".join(
        f"affine_map<({', '.join(order)}) -> ({', '.join(loops)})>" for loops in (data_loops, weight_loops, result)
    )
    kinds = ", ".join('"parallel"' if loop in result else '"reduction"' for loop in order)
    found = main.op(
        f"vector.contract {{indexing_maps = [{texts}], iterator_types = [{kinds}], kind = #vector.kind<add>}} "
        f"{wide[0][0]}, {wide[1][0]}, {start} : {wide[0][1]}, {wide[1][1]} into {vector(shape, 'i32')}"
    )
    return _stored_tiles(draw, main, rng, found, shape)


def _strided(main: Main, rng: np.random.Generator, sizes: list[int], strides: list[int], rest: int = 0) -> str:
    length = 1 + rest + sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True))
    buffer = main.buffer(rng.integers(0, 256, length, np.uint8), sizes, strides)
    return main.read(buffer, sizes, [0] * len(sizes))


def _stored_tiles(draw: Draw, main: Main, rng: np.random.Generator, sums: str, shape: list[int]) -> Program:
    """Element-wise ops on tiles, then a write of them, as bytes or as they are."""
    wide, narrow = vector(shape, "i32"), vector(shape, "i8")
    own = draw(st.sampled_from([shape, _TILE]))
    more = main.read(main.buffer(rng.integers(-500, 500, own, np.int32)), own, [0] * len(own))
    if own != shape:
        more = main.op(f"vector.broadcast {more} : {vector(own, 'i32')} to {wide}")
    sums = main.op(f"arith.{draw(st.sampled_from(['addi', 'xori']))} {sums}, {more} : {wide}")
    if draw(st.booleans()):
        main.write(sums, wide, main.buffer(np.zeros(shape, np.int32)), [0] * len(shape))
    limits = [main.op(f"arith.constant dense<{bound}> : {wide}") for bound in (0, draw(st.sampled_from([255, 300])))]
    for op, limit in zip(("maxsi", "minsi"), limits, strict=True):
        sums = main.op(f"arith.{op} {sums}, {limit} : {wide}")
    value = main.op(f"arith.trunci {sums} : {wide} to {narrow}")
    lanes = draw(st.sampled_from([layout for layout in _LAYOUTS if layout != [8, 4, 24, 12, 1]]))
    strides = [160, *lanes]
    length = 1 + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
    main.write(value, narrow, main.buffer(np.zeros(length, np.uint8), shape, strides), [0] * len(shape))
    return main.program()
