"""The function that computes a batch of any size by the bodies of a few sizes, the largest first, as text."""

from __future__ import annotations

from collections.abc import Sequence

from qdialect.aot.network import Batch


def batch_loop(
    symbol: str,
    batch: Batch,
    steps: Sequence[int],
    bodies: Sequence[tuple[str, str, bool]],
    *,
    limited: bool,
    may_fail: bool,
) -> str:
    """A function of the arrays, the workspace, the number of entries and, if `limited`, a pointer to the team's limit.

    With `may_fail`, the workspace begins with the status of the calls of other libraries: what is not 0 ends the batch.

    `steps` are the bytes of each array for an entry, 0 for one without batch. `bodies` are, for each of `batch.rows`,
    the symbols of the code and of its constants, and whether the code takes the limit.
    """
    arrays = [f"%array{i}" for i in range(len(steps))]
    limit = ["%limit"] if limited else []
    parameters = [f"{name}: !llvm.ptr" for name in (*arrays, "%workspace", *limit)]
    lines = [
        f"llvm.func internal @{symbol}({', '.join(parameters)}, %batch: i64) {{",
        "  %start = llvm.mlir.constant(0 : i64) : i64",
        # An empty batch calls nothing that clears it.
        *(["  llvm.store %start, %workspace : i64, !llvm.ptr"] if may_fail else []),
        "  llvm.br ^head0(%start : i64)",
    ]
    for number, (rows, (body, constants, is_divided)) in enumerate(zip(batch.rows, bodies, strict=True)):
        at = [f"%at{number}_{i}" if step else name for i, (step, name) in enumerate(zip(steps, arrays, strict=True))]
        operands = [*at, f"%constants{number}", "%workspace", *(limit if is_divided else [])]
        lines += [
            f"^head{number}(%first{number}: i64):",
            f"  %rows{number} = llvm.mlir.constant({rows} : i64) : i64",
            f"  %left{number} = llvm.sub %batch, %first{number} : i64",
            f'  %has{number} = llvm.icmp "sge" %left{number}, %rows{number} : i64',
            f"  llvm.cond_br %has{number}, ^body{number}, ^head{number + 1}(%first{number} : i64)",
            f"^body{number}:",
            *(line for i, step in enumerate(steps) if step for line in _moved(number, i, step)),
            f"  %constants{number} = llvm.mlir.addressof @{constants} : !llvm.ptr",
            f"  llvm.call @{body}({', '.join(operands)}) : ({', '.join(['!llvm.ptr'] * len(operands))}) -> ()",
            f"  %next{number} = llvm.add %first{number}, %rows{number} : i64",
            *_next(number, f"^head{len(bodies)}", may_fail),
        ]
    return "\n".join([*lines, f"^head{len(bodies)}(%end: i64):", "  llvm.return", "}"])


def _next(number: int, end: str, may_fail: bool) -> list[str]:
    """Go on with the next entries, or to the block `end` where a call of another library has failed."""
    if not may_fail:
        return [f"  llvm.br ^head{number}(%next{number} : i64)"]
    return [
        f"  %status{number} = llvm.load %workspace : !llvm.ptr -> i64",
        f'  %has_failed{number} = llvm.icmp "ne" %status{number}, %start : i64',
        f"  llvm.cond_br %has_failed{number}, {end}(%next{number} : i64), ^head{number}(%next{number} : i64)",
    ]


def _moved(number: int, array: int, step: int) -> list[str]:
    return [
        f"  %step{number}_{array} = llvm.mlir.constant({step} : i64) : i64",
        f"  %offset{number}_{array} = llvm.mul %first{number}, %step{number}_{array} : i64",
        f"  %at{number}_{array} = llvm.getelementptr %array{array}[%offset{number}_{array}] : "
        "(!llvm.ptr, i64) -> !llvm.ptr, i8",
    ]
