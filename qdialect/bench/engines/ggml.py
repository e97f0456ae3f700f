"""ggml, by which llama.cpp computes: layers of language models with weights in Q4_0 or Q8_0, in the graph of its Llama.

A block of 32 weights has an f16 scale, and the rows that meet them are quantized in blocks of 32 to 8 bits: no variant
is the function of a layer whose rows stay floats.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from qdialect.bench.cases import Array, Case, Form, Session, foreign
from qdialect.bench.float_functions import EPSILON
from qdialect.bench.transformers import BLOCK, LANGUAGE_LAYERS

_NIBBLES, _BYTES = "q4_0", "q8_0"
_PLAIN = "CPU"
_TENSORS = 1000
"""At most, of a graph with its weights."""
_SMALL = 256
_Tensor = Any


class Ggml:
    """The package `ggml-python`."""

    def __init__(self) -> None:
        self._ggml = foreign("ggml")

    def variants(self, case: Case) -> Mapping[str, str]:
        if case.name not in LANGUAGE_LAYERS:
            return {}
        kind = _BYTES if case.name.endswith("int8") else _NIBBLES
        return {kind if name == _PLAIN else f"{kind}_{name}": "onnx" for name in self._buffers(kind)}

    def load(self, case: Case, variant: str, threads: int) -> Session:
        form, kind = case.forms["onnx"], variant[: len(_NIBBLES)]
        buffer = self._buffers(kind)[variant[len(kind) + 1 :] or _PLAIN]
        return _session(self._ggml, form, kind, buffer, threads)

    def _buffers(self, kind: str) -> dict[str, Any]:
        """Kinds of memory for weights by name: as they are, and as those kernels want them that there are here."""
        ggml = self._ggml
        registry = ggml.ggml_backend_cpu_reg()
        device = ggml.ggml_backend_reg_dev_get(registry, 0)
        address = ggml.ggml_backend_reg_get_proc_address(registry, b"ggml_backend_dev_get_extra_bufts")
        listed = ctypes.CFUNCTYPE(ctypes.POINTER(ctypes.c_void_p), ctypes.c_void_p)(address)(device)
        found = {_PLAIN: ggml.ggml_backend_dev_buffer_type(device)}
        context = _context(ggml)
        for kernel in iter(iter(listed).__next__, None):
            weight = ggml.ggml_new_tensor_2d(context, _type(ggml, kind), _SMALL, _SMALL)
            weight.contents.buffer = ggml.ggml_backend_buft_alloc_buffer(kernel, 0)
            data = ggml.ggml_new_tensor_2d(context, ggml.GGML_TYPE_F32, _SMALL, 1)
            if ggml.ggml_backend_dev_supports_op(device, ggml.ggml_mul_mat(context, weight, data)):
                found[ggml.ggml_backend_buft_name(kernel).decode().lower()] = kernel
            ggml.ggml_backend_buffer_free(weight.contents.buffer)
        ggml.ggml_free(context)
        return found


def _session(ggml: Any, form: Form, kind: str, buffer: Any, threads: int) -> Session:
    """A graph, its weights, and memory for the rest."""
    inputs, wanted = form.inputs(), form.outputs()
    backend = ggml.ggml_backend_cpu_init()
    ggml.ggml_backend_cpu_set_n_threads(backend, threads)
    held, kept = _context(ggml), _context(ggml)
    products, norms = constants(form)
    weights = [ggml.ggml_new_tensor_2d(held, _type(ggml, kind), *extents) for extents, _ in products]
    memory = [ggml.ggml_backend_alloc_ctx_tensors_from_buft(held, buffer)]
    for weight, (_, content) in zip(weights, products, strict=True):
        _set(ggml, weight, content)

    numbers = [*norms, *inputs, *_mask(wanted[0], wanted[1])]
    tensors = [_new(ggml, kept, array) for array in numbers]
    caches = [_new(ggml, kept, array) for array in wanted[1:]]
    memory.append(ggml.ggml_backend_alloc_ctx_tensors(kept, backend))
    for tensor, array in zip(tensors, numbers, strict=True):
        _set(ggml, tensor, array)

    graphs = _context(ggml)
    layer = _Layer(ggml, graphs, weights, tensors, caches, len(inputs))
    results = [layer.result(), *caches]
    allocator = ggml.ggml_gallocr_new(ggml.ggml_backend_get_default_buffer_type(backend))
    ggml.ggml_gallocr_alloc_graph(allocator, layer.graph)

    def call() -> None:
        ggml.ggml_backend_graph_compute(backend, layer.graph)

    def outputs() -> list[Array]:
        found: list[Array] = [np.empty(array.shape, array.dtype) for array in wanted]
        for tensor, array in zip(results, found, strict=True):
            ggml.ggml_backend_tensor_get(tensor, array.ctypes.data, 0, array.nbytes)
        return found

    session = Session(call, outputs)
    weakref.finalize(session, _free, ggml, (held, kept, graphs), memory, allocator, backend)
    return session


class _Layer:
    """A layer in ggml's operators; of a shape [a, b, c] the last extent comes first."""

    def __init__(
        self,
        ggml: Any,
        context: Any,
        weights: list[_Tensor],
        tensors: list[_Tensor],
        caches: list[_Tensor],
        inputs: int,
    ) -> None:
        self._ggml, self._context = ggml, context
        self._weights = iter(weights)
        self._norms, self._state = iter(tensors[:2]), tensors[2]
        self._past, (self._mask,) = tensors[3 : 2 + inputs], tensors[2 + inputs :] or [None]
        self._caches = caches
        self.graph = ggml.ggml_new_graph(context)

    def result(self) -> _Tensor:
        """The layer's result; its caches are written before it."""
        ggml, context, state = self._ggml, self._context, self._state
        normal = self._normal(state)
        query = self._linear(normal)
        keys, values = (self._cached(index, self._linear(normal)) for index in (0, 1))
        rows = ggml.ggml_permute(context, self._heads(query, keys), 0, 2, 1, 3)
        merged = ggml.ggml_flash_attn_ext(context, rows, keys, values, self._mask, 1.0, 0.0, 0.0)
        width, new = state.contents.ne[:2]
        attended = self._linear(ggml.ggml_reshape_2d(context, merged, width, new))
        state = ggml.ggml_add(context, state, attended)
        normal = self._normal(state)
        active = ggml.ggml_swiglu_split(context, self._linear(normal), self._linear(normal))
        result = ggml.ggml_add(context, state, self._linear(active))
        ggml.ggml_set_output(result)
        ggml.ggml_build_forward_expand(self.graph, result)
        return result

    def _normal(self, source: _Tensor) -> _Tensor:
        ggml, context = self._ggml, self._context
        return ggml.ggml_mul(context, ggml.ggml_rms_norm(context, source, EPSILON), next(self._norms))

    def _linear(self, source: _Tensor) -> _Tensor:
        return self._ggml.ggml_mul_mat(self._context, next(self._weights), source)

    def _heads(self, rows: _Tensor, cache: _Tensor) -> _Tensor:
        columns, (width, new) = cache.contents.ne[0], rows.contents.ne[:2]
        return self._ggml.ggml_reshape_3d(self._context, rows, columns, width // columns, new)

    def _cached(self, index: int, rows: _Tensor) -> _Tensor:
        """A cache [1, groups, tokens, columns] of what there was and of the new rows."""
        ggml, context, cache = self._ggml, self._context, self._caches[index]
        columns, tokens, groups = cache.contents.ne[:3]
        new = ggml.ggml_permute(context, self._heads(rows, cache), 0, 2, 1, 3)
        parts, first = [*self._past[index : index + 1], new], 0
        row, group = cache.contents.nb[1:3]
        for part in parts:
            count = part.contents.ne[1]
            view = ggml.ggml_view_3d(context, cache, columns, count, groups, row, group, first * row)
            ggml.ggml_build_forward_expand(self.graph, ggml.ggml_cpy(context, part, view))
            first += count
        assert first == tokens
        return cache


def constants(form: Form) -> tuple[list[tuple[tuple[int, int], Array]], list[Array]]:
    """Of the layer's products the extents [inputs, outputs] and the weights in blocks; the scales of both norms."""
    onnx = foreign("onnx")
    graph = onnx.load(form.model).graph
    constants = {one.name: onnx.numpy_helper.to_array(one) for one in graph.initializer}
    products: list[tuple[tuple[int, int], Array]] = []
    norms: list[Array] = []
    for node in graph.node:
        held = [constants[name] for name in node.input if name in constants]
        if node.op_type == "MatMulNBits":
            # Q4_0 of MatMulNBits' weights: of a byte the low half is of the block's first 16, the high of its last.
            packed = held[0]
            stored = np.stack([packed & 15, packed >> 4], axis=-1).reshape(*packed.shape[:2], BLOCK)
            products.append(_blocks(held[1], stored[..., : BLOCK // 2] | stored[..., BLOCK // 2 :] << 4))
        elif node.op_type == "DequantizeLinear":
            # Q8_0 of weights [outputs, inputs]: each block has its channel's scale.
            values = held[0].T
            blocks = values.reshape(len(values), -1, BLOCK)
            products.append(_blocks(np.repeat(held[1][:, None], blocks.shape[1], axis=1), blocks))
        elif node.op_type == "Mul" and held and held[0].ndim == 1:
            norms.append(held[0])
    return products, norms


def _blocks(scales: Array, values: Array) -> tuple[tuple[int, int], Array]:
    outputs, count = values.shape[:2]
    halves = scales.reshape(outputs, count, 1).astype(np.float16).view(np.uint8)
    return (count * BLOCK, outputs), np.concatenate([halves, values.view(np.uint8)], axis=-1)


def _mask(result: Array, cache: Array) -> list[Array]:
    """Where there are several rows, what is added to the scores of each."""
    new, tokens = len(result), cache.shape[2]
    return [np.triu(np.full((new, tokens), -np.inf, np.float16), tokens - new + 1)] if new > 1 else []


def _type(ggml: Any, kind: str) -> int:
    number: int = getattr(ggml, f"GGML_TYPE_{kind.upper()}")
    return number


def _context(ggml: Any) -> Any:
    size = _TENSORS * ggml.ggml_tensor_overhead() + ggml.ggml_graph_overhead()
    return ggml.ggml_init(ggml.ggml_init_params(mem_size=size, mem_buffer=None, no_alloc=True))


def _new(ggml: Any, context: Any, array: Array) -> _Tensor:
    """A tensor for an array, which is not copied yet."""
    kind = ggml.GGML_TYPE_F16 if array.dtype == np.float16 else ggml.GGML_TYPE_F32
    extents = array.shape[::-1]
    return ggml.ggml_new_tensor(context, kind, array.ndim, (ctypes.c_int64 * array.ndim)(*extents))


def _set(ggml: Any, tensor: _Tensor, array: Array) -> None:
    content = np.ascontiguousarray(array)
    ggml.ggml_backend_tensor_set(tensor, content.ctypes.data, 0, content.nbytes)


def _free(ggml: Any, contexts: Sequence[Any], memory: Sequence[Any], allocator: Any, backend: Any) -> None:
    frees: list[tuple[Callable[[Any], None], Sequence[Any]]] = [
        (ggml.ggml_gallocr_free, [allocator]),
        (ggml.ggml_backend_buffer_free, memory),
        (ggml.ggml_free, contexts),
        (ggml.ggml_backend_free, [backend]),
    ]
    for free, things in frees:
        for one in things:
            free(one)
