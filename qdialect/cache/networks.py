"""Networks in the cache: found by the digest of their inputs, or compiled and kept."""

from __future__ import annotations

import os

from qdialect.aot import record
from qdialect.aot.record import Network, Version
from qdialect.cache import executable
from qdialect.cache.executable import load_network
from qdialect.cache.fingerprint import fingerprint, key
from qdialect.cache.store import Store
from qdialect.ir._mlir import ir
from qdialect.ir.context import copy
from qdialect.ir.module_text import metadata_of
from qdialect.lowering.ir.lowered import Lowered, Phase, phase_of
from qdialect.lowering.pipeline.phases import lower
from qdialect.lowering.x86_to_llvm.openmp import is_divided
from qdialect.lowering.x86_to_llvm.to_llvm import keep_to_target
from qdialect.runtime import compiler, memory
from qdialect.runtime.base import Executable
from qdialect.runtime.compiler import compile_module, prepared
from qdialect.runtime.library import PERF_MAP
from qdialect.runtime.states import with_states
from qdialect.support.late_imports import LATE_IMPORTS
from qdialect.support.options import CompileOptions
from qdialect.targets import Target

_KIND, _LISTING = "network", "listing"


def compile_kept(
    module: ir.Module, options: CompileOptions, store: Store | None, *, is_verified: bool = False
) -> Executable:
    """`module` as an executable, as `compile_module` gives it: from `store`, or compiled and put there.

    Without a store, and where it is not known what the code would depend on, nothing is kept. Raises as
    `compile_module` does, whether the network is there or not.
    """
    mark = fingerprint() if store is not None else None
    target, threads, workspaces = options.target, options.threads, options.workspaces
    if store is None or mark is None or phase_of(module).number > Phase.VECTOR.number:
        found = compile_module(module, target=target, threads=threads, workspaces=workspaces, is_verified=is_verified)
        return with_states(found)
    memory.checked(workspaces)
    chosen, wanted = prepared(module, target, threads, is_verified)
    # Its bytecode depends on where things lie in memory, its text does not.
    text = module.operation.get_asm(enable_debug_info=True, assume_verified=True)
    name = key(_KIND, text, chosen.name, str(wanted), mark)
    found = load_network(store, name, workspaces)
    if found is None and _make(store, name, module, chosen, wanted, mark):
        found = load_network(store, name, workspaces)
        # It has been loaded: however small the cache is, this call does not need the entry again.
        store.trim()
    found = found or compile_module(module, target=target, threads=threads, workspaces=workspaces, is_verified=True)
    return with_states(found)


def _make(store: Store, name: str, module: ir.Module, target: Target, threads: int, mark: bytes) -> bool:
    """Compile the network and put it into the store; whether it is there."""
    with LATE_IMPORTS:
        from qdialect.cache import kernels
        from qdialect.cache.kernels import linked
        from qdialect.lowering.pipeline.phases import lower_with_lines

    vector = lower(module, target, Phase.VECTOR, threads=threads)
    if vector.externals:
        return False
    has_lines = PERF_MAP in os.environ
    # The lines of a kernel are those of its network.
    found = [] if has_lines else kernels.kernels_of(vector.module, target.name, mark)
    known = kernels.known_kernels(store, found)
    if has_lines:
        listing = store.path / key(_LISTING, name)
        last, text = lower_with_lines(module, target, listing, threads=threads)
        # An entry begins with its first section, and so can be read as that.
        store.put(listing.name, {_LISTING: text.encode()})
    else:
        rest = copy(vector.module)
        kernels.drop_bodies(rest, [kernel for kernel in found if kernel.key in known.keys])
        last = lower(rest, target, Phase.LLVM, threads=vector.threads)
    keep_to_target(last.module, target)
    divided = {executable.DIVIDED: b""} if is_divided(last.module) else {}
    objects = kernels.compiled_apart(last.module, found, known, store)
    library = linked(objects)
    if library is None and (has_lines or not executable.can_load_objects()):
        return False
    code = (
        {executable.LIBRARY: library} if library else {f"{executable.OBJECT}{i}": one for i, one in enumerate(objects)}
    )
    constants = vector.constants.tobytes()
    about = {executable.RECORD: record.written(_described(vector, target)), executable.CONSTANTS: constants}
    return store.put(name, {**code, **about, **divided, executable.MODULE: compiler.kept_for_saving(vector.module)})


def _described(vector: Lowered, target: Target) -> Network:
    features = tuple(sorted(target.code_features))
    version = Version(target.name, features, vector.arena_bytes, vector.constants.size, vector.calls)
    metadata = metadata_of(vector.module)
    states = vector.states
    return Network(_KIND, vector.inputs, vector.outputs, vector.threads, (version,), metadata=metadata, states=states)
