"""A network compiled and kept, with the fastest variants of its kernels where that is asked for."""

from __future__ import annotations

from qdialect._mlir import ir
from qdialect.cache.networks import compile_kept
from qdialect.cache.store import Store
from qdialect.late_imports import LATE_IMPORTS
from qdialect.runtime.base import Executable


def compile_tuned(
    module: ir.Module,
    *,
    target: str,
    threads: int,
    store: Store | None,
    workspaces: int | None = None,
    tune: bool = False,
    is_verified: bool = False,
) -> Executable:
    """`module` as `compile_kept` compiles it; with `tune` its kernels are measured before.

    Raises as `compile_kept` and `tuned` do.
    """
    if not tune:
        return compile_kept(
            module, target=target, threads=threads, store=store, workspaces=workspaces, is_verified=is_verified
        )
    with LATE_IMPORTS:
        from qdialect.tuning.tuner import tuned

    faster, report = tuned(module, target, store=store)
    executable = compile_kept(faster, target=target, threads=threads, store=store, workspaces=workspaces)
    executable.tuning = report
    return executable
