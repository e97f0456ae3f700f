"""What a module of `tosa` ops computes by upstream's own lowering, compiled in this process."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdialect.dialect.type_constraints import dtype_of, shape_of
from qdialect.ir import context
from qdialect.ir._mlir import ExecutionEngine, ir, passmanager

Array = NDArray[Any]

_PASSES = (
    "func.func(tosa-optional-decompositions)",
    "func.func(tosa-to-linalg-named,tosa-to-linalg,tosa-to-arith{include-apply-rescale=true use-32-bit=false})",
    "func.func(tosa-to-tensor)",
    "canonicalize",
    "one-shot-bufferize{bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map}",
    "buffer-results-to-out-params{modify-public-functions=true}",
    "convert-linalg-to-loops",
    "expand-strided-metadata",
    "lower-affine",
    "convert-scf-to-cf",
    "convert-math-to-llvm",
    "finalize-memref-to-llvm",
    "convert-arith-to-llvm",
    "convert-index-to-llvm",
    "convert-cf-to-llvm",
    "convert-func-to-llvm",
    "reconcile-unrealized-casts",
)


def run(module: ir.Module, inputs: Sequence[Array]) -> list[Array]:
    """The results of ``@main``, whose tensors have signless integer elements; `module` stays as it is."""
    lowered = context.copy(module)
    function = lowered.body.operations[0].operation
    type_ = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
    results = [np.zeros(shape_of(one), dtype_of(one)) for one in type_.results]
    with lowered.context, ir.Location.unknown():
        function.attributes["llvm.emit_c_interface"] = ir.UnitAttr.get()
        passmanager.PassManager.parse(f"builtin.module({','.join(_PASSES)})").run(lowered.operation)
    engine = ExecutionEngine(lowered, opt_level=0, enable_object_dump=False)
    engine.raw_register_runtime("memrefCopy", ctypes.cast(_COPY, ctypes.c_void_p))
    arrays = [*(np.ascontiguousarray(array) for array in inputs), *results]
    pointers = [ctypes.pointer(ctypes.pointer(_descriptor(array))) for array in arrays]
    packed = (ctypes.c_void_p * len(pointers))(*(ctypes.cast(pointer, ctypes.c_void_p) for pointer in pointers))
    call = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(engine.raw_lookup("_mlir_ciface_main"))
    call(ctypes.addressof(packed))
    return results


def _descriptor(array: Array) -> ctypes.Array[ctypes.c_int64]:
    """What generated code calls a memref: two addresses, an offset, sizes and strides, eight bytes each."""
    strides = [stride // array.itemsize for stride in array.strides]
    return (ctypes.c_int64 * (3 + 2 * array.ndim))(*[array.ctypes.data] * 2, 0, *array.shape, *strides)


class _Unranked(ctypes.Structure):
    _fields_ = (("rank", ctypes.c_int64), ("descriptor", ctypes.POINTER(ctypes.c_int64)))

    def array(self, item_size: int) -> Array:
        """The memory it describes."""
        rank = int(self.rank)
        _, aligned, offset, *rest = self.descriptor[: 3 + 2 * rank]
        sizes, strides = rest[:rank], [stride * item_size for stride in rest[rank:]]
        first = np.ctypeslib.as_array((ctypes.c_uint8 * item_size).from_address(aligned + offset * item_size))
        return np.lib.stride_tricks.as_strided(first, (*sizes, item_size), (*strides, 1))


def _copy(item_size: int, source: Any, target: Any) -> None:
    target.contents.array(item_size)[...] = source.contents.array(item_size)


# MLIR's runtime library has this function, the bindings do not.
_COPY = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.POINTER(_Unranked), ctypes.POINTER(_Unranked))(_copy)
