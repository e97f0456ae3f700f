"""linalg -> vector: tile, fuse and vectorize every nest by the transform dialect.

A nest is a root generic (the epilogue: it writes the destination) and the producers it reads.  The schedule tiles the
root by its tile sizes, pulls each producer into the innermost loop, tiles the producers' reduction loops, vectorizes
what is left, and hoists accumulators out of the reduction loops into loop-carried vectors.  Tile sizes stand on the ops
(`qnn.tiles`): this step only reads them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from qdialect._mlir import ir, passmanager, transform_interpreter

_OP = "!transform.any_op"

_BUFFERIZE = "builtin.module(one-shot-bufferize,canonicalize,cse,func.func(canonicalize))"


@dataclass(frozen=True)
class _Tagged:
    """A linalg op of a nest, as its tag describes it."""

    nest: int
    role: str
    tiles: tuple[int, ...]


def to_vector(module: ir.Module) -> None:
    """Replace every nest of `module` by loops over vectors on buffers, in place."""
    with module.context, ir.Location.unknown():
        for function in _functions(module):
            nests = _nests(function)
            if nests:
                script = ir.Module.parse(_schedule(nests))
                transform_interpreter.apply_named_sequence(function, script.body.operations[0], script)
        passmanager.PassManager.parse(_BUFFERIZE).run(module.operation)


def _functions(module: ir.Module) -> list[ir.Operation]:
    return [op.operation for op in module.body.operations if op.operation.name == "func.func"]


def _nests(function: ir.Operation) -> list[list[_Tagged]]:
    """The tagged ops of each nest, in program order."""
    nests: dict[int, list[_Tagged]] = {}
    for op in _walk(function):
        if "qnn.nest" in op.attributes:
            tagged = _read_tag(op)
            nests.setdefault(tagged.nest, []).append(tagged)
    return list(nests.values())


def _walk(op: ir.Operation) -> Iterator[ir.Operation]:
    """The ops inside `op`, down to the loops of its kernel."""
    for region in op.regions:
        for block in region.blocks:
            for child in block.operations:
                yield child.operation
                if child.operation.name == "scf.for":
                    yield from _walk(child.operation)


def _read_tag(op: ir.Operation) -> _Tagged:
    attributes = op.attributes
    tiles = tuple(ir.DenseI64ArrayAttr(attributes["qnn.tiles"])) if "qnn.tiles" in attributes else ()
    return _Tagged(ir.IntegerAttr(attributes["qnn.nest"]).value, ir.StringAttr(attributes["qnn.role"]).value, tiles)


def _schedule(nests: list[list[_Tagged]]) -> str:
    """The transform script for one kernel function."""
    lines = [line for nest in nests for line in _tile_and_fuse(nest)]
    body = "\n    ".join([*lines, *_VECTORIZE])
    return f"""module attributes {{transform.with_named_sequence}} {{
  transform.named_sequence @__transform_main(%func: {_OP}) {{
    {body}
    transform.yield
  }}
}}"""


def _tile_and_fuse(nest: list[_Tagged]) -> Iterator[str]:
    """Tile the root, then bring each producer and the fill it starts from into the innermost loop."""
    root = next(op for op in nest if op.role == "root")
    name = f"n{root.nest}"
    for op in nest:
        attributes = f'qnn.nest = {op.nest} : i64, qnn.role = "{op.role}"'
        yield f"%{name}_{op.role} = transform.structured.match attributes {{{attributes}}} in %func : ({_OP}) -> {_OP}"
    loops = [f"%{name}_l{i}" for i, tile in enumerate(root.tiles) if tile]
    yield _tiling(f"{name}_root", root.tiles, loops)
    loop = loops[-1]
    # Backwards: an accumulation is fused before what it starts from.
    producers = [op for op in reversed(nest) if op.role != "root"]
    for op in producers:
        fused, next_loop = f"%{name}_{op.role}_f", f"%{name}_{op.role}_l"
        operands = f"%{name}_{op.role} into {loop} : ({_OP}, {_OP}) -> ({_OP}, {_OP})"
        yield f"{fused}, {next_loop} = transform.structured.fuse_into_containing_op {operands}"
        loop = next_loop
    for op in producers:
        steps = [f"%{name}_{op.role}_r{i}" for i, tile in enumerate(op.tiles) if tile]
        if steps:
            yield _tiling(f"{name}_{op.role}_f", op.tiles, steps)


def _tiling(target: str, tiles: tuple[int, ...], loops: list[str]) -> str:
    results = ", ".join([_OP] * (len(loops) + 1))
    tiled = f"%{target}_t, {', '.join(loops)} = transform.structured.tile_using_for %{target}"
    return f"{tiled} tile_sizes {list(tiles)} : ({_OP}) -> ({results})"


_VECTORIZE = (
    # No canonicalization yet: it would turn a generic that copies into a buffer copy, which nothing vectorizes.
    f"transform.apply_patterns to %func {{ transform.apply_patterns.tensor.fold_tensor_empty }} : {_OP}",
    # A table read, tensor.extract at a data-dependent index, becomes vector.gather.
    f"%vectorized = transform.structured.vectorize_children_and_apply_patterns %func {{vectorize_nd_extract}}"
    f" : ({_OP}) -> {_OP}",
    f'%loops = transform.structured.match ops{{["scf.for"]}} in %vectorized : ({_OP}) -> {_OP}',
    # The accumulator tile leaves memory: it is carried through the reduction loops as vectors.
    f"transform.loop.hoist_loop_invariant_subsets %loops : {_OP}",
    f"transform.apply_patterns to %vectorized {{ transform.apply_patterns.canonicalization }} : {_OP}",
)
