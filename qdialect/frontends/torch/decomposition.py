"""Operators as PyTorch itself decomposes them, one level at a time.

An operator that the front end does not know is traced on tensors without memory, so that the simpler operators of which
PyTorch makes it come to light; each of these is planned in its stead, or decomposed again.  Only PyTorch's own code
runs, the kernels of its composite operators and the entry of its decomposition table for this very operator, but where
that is not what its kernel computes.  Tensors of small floats stay such, so that each part rounds, and in place of a
kernel that rounds what it computes on the way stand operators that do so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

from qdialect.dialect.type_constraints import NUMPY_DTYPES, SMALL_FLOATS
from qdialect.frontends.building.checks import Array, UnsupportedError, require
from qdialect.frontends.torch.program import pytorch_operators
from qdialect.frontends.torch.program.functionalization import is_in_place
from qdialect.frontends.torch.program.model import Node, Output
from qdialect.frontends.torch.program.reader import read_traced
from qdialect.support.diagnostics import ImportModelError

_MAX_NODES = 4096


def rounds_parts(node: Node, tensors: Mapping[str, Output]) -> bool:
    """Whether PyTorch rounds more than the result of an operator that reads and gives small floats."""
    if not _reads_small(node, tensors) or all(output.element not in SMALL_FLOATS for output in node.outputs):
        return False
    if node.kind == _LINEAR:
        source = tensors[node.refs()[0]]
        return node.arguments["bias"] is not None and len(source.shape) > 2 and not source.is_contiguous
    # oneDNN has layers of its own.
    is_own = node.kind == "aten.lstm.input" and node.outputs[0].element == "bf16"
    return not is_own and (node.kind in _ROUNDING or node.kind.startswith(_OF_KERNELS))


def is_of_one_form(node: Node, tensors: Mapping[str, Output]) -> bool:
    """Whether PyTorch's kernel for small floats differs from every other form of an operator that reads them.

    Raises `UnsupportedError` where it counts elements in 16 bits, and an image has more.
    """
    if node.kind != _GRID_SAMPLER or not _reads_small(node, tensors):
        return False
    image = tensors[node.refs()[0]]
    count = math.prod(image.shape[2:] if image.is_contiguous else image.shape)
    require(count < _COUNTED, f"image of {image.element} must have fewer than {_COUNTED} elements, but has {count}")
    return True


def _reads_small(node: Node, tensors: Mapping[str, Output]) -> bool:
    return any(name in tensors and tensors[name].element in SMALL_FLOATS for name in node.refs())


_LINEAR, _GRID_SAMPLER = "aten.linear.default", "aten.grid_sampler_2d.default"
_COUNTED = 1 << 15
_OF_KERNELS = tuple(f"aten.{name}" for name in ("gru", "instance_norm", "lstm", "rnn_"))
"""Operators that PyTorch computes by several kernels, and the front end by one op."""
_ROUNDING: dict[str, Callable[..., Any]] = {}
"""By the kinds of operators: what their kernels for small floats compute, as operators of which each rounds."""


def _rounding(*kinds: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def register(parts: Callable[..., Any]) -> Callable[..., Any]:
        _ROUNDING.update((f"aten.{kind}", parts) for kind in kinds)
        return parts

    return register


def _reduced(losses: Any, reduction: int) -> Any:
    return (losses, losses.mean(), losses.sum())[reduction] if reduction else losses


@_rounding("linear.default")
def _linear(x: Any, weight: Any, bias: Any) -> Any:
    return x @ weight.t() + bias


@_rounding("mse_loss.default")
def _mse_loss(x: Any, target: Any, reduction: int = 1) -> Any:
    return _reduced((x - target) * (x - target), reduction)


@_rounding("soft_margin_loss.default")
def _soft_margin_loss(x: Any, target: Any, reduction: int = 1) -> Any:
    return _reduced((-target * x).exp().log1p(), reduction)


@_rounding("binary_cross_entropy.default")
def _binary_cross_entropy(x: Any, target: Any, weight: Any = None, reduction: int = 1) -> Any:
    losses = (target - 1) * (-x).log1p().clamp(min=-100) - target * x.log().clamp(min=-100)
    return _reduced(losses if weight is None else losses * weight, reduction)


@_rounding("xlogy.Tensor")
def _xlogy(x: Any, y: Any) -> Any:
    return (x * y.log()).masked_fill(x == 0, 0).masked_fill(y.isnan(), math.nan)


@_rounding("logit.default")
def _logit(x: Any, eps: float | None = None) -> Any:
    x = x if eps is None else x.clamp(eps, 1 - eps)
    return (x / (1 - x)).log()


@_rounding("pow.Tensor_Scalar")
def _pow(x: Any, exponent: float) -> Any:
    require(exponent in (3, -2) and str(x.dtype) == "torch.bfloat16", "power is rounded once")
    return x * x * x if exponent == 3 else (x * x).reciprocal()


@_rounding("div.Tensor_mode", "floor_divide.default")
def _div(x: Any, y: Any, *, rounding_mode: str | None = "floor") -> Any:
    torch = pytorch_operators.torch_package()
    is_tensor = isinstance(y, torch.Tensor) and y.numel() != 1
    require(is_tensor and rounding_mode is not None, "quotients by one number are rounded once")
    if rounding_mode == "trunc":
        return (x / y).trunc()
    rest = torch.fmod(x, y)
    exact = (x - rest) / y
    exact = torch.where((rest != 0) & ((rest < 0) != (y < 0)), exact - 1, exact)
    whole = exact.floor()
    whole = torch.where(exact - whole > 0.5, whole + 1, whole)
    # A zero has the sign of the quotient.
    return torch.where(y == 0, x / y, torch.where(exact == 0, x / y * 0, whole))


@_rounding("addr.default")
def _addr(x: Any, column: Any, row: Any, *, beta: float = 1, alpha: float = 1) -> Any:
    require(beta == alpha == 1, "beta and alpha must be 1")
    return x + column.unsqueeze(1) * row


@_rounding("logsumexp.default")
def _logsumexp(x: Any, dim: tuple[int, ...], keepdim: bool = False) -> Any:
    largest = x.amax(dim, keepdim=True)
    largest = largest.masked_fill(largest.abs() == math.inf, 0)
    total = (x - largest).exp().sum(dim, keepdim=keepdim).log()
    return total + (largest if keepdim else largest.amax(dim))


@_rounding("log_softmax.int", "_log_softmax.default")
def _log_softmax(x: Any, dim: int, _: Any = None) -> Any:
    require(dim % x.dim() == x.dim() - 1, "logarithms of other rows are rounded once")
    distance = x.float() - x.float().amax(dim, keepdim=True)
    total = distance.exp().sum(dim, keepdim=True).to(x.dtype).log()
    return (distance - total.float()).to(x.dtype)


@_rounding("linalg_cross.default")
def _linalg_cross(x: Any, y: Any, *, dim: int = -1) -> Any:
    (a, b, c), (d, e, f) = x.unbind(dim), y.unbind(dim)
    return pytorch_operators.torch_package().stack([b * f - c * e, c * d - a * f, a * e - b * d], dim)


@_rounding("native_batch_norm.default")
def _native_batch_norm(
    x: Any, weight: Any, bias: Any, _running_mean: Any, _running_var: Any, training: Any, _momentum: float, eps: float
) -> Any:
    is_alike = weight is None or weight.dtype == x.dtype
    require(training and is_alike, "normalization is rounded once")
    axes = [axis for axis in range(x.dim()) if axis != 1]
    held, stored = x.float(), x.dtype
    mean = held.mean(axes, keepdim=True).to(stored).float()
    factor = (held.var(axes, correction=0, keepdim=True) + eps).rsqrt().to(stored).float()
    shape = factor.shape
    scale = factor if weight is None else factor * weight.float().view(shape)
    offset = -mean * scale if bias is None else bias.float().view(shape) - mean * scale
    return (held * scale + offset).to(stored), mean.flatten(), factor.flatten()


@_rounding("grid_sampler_2d.default")
def _grid_sampler(image: Any, grid: Any, mode: int, padding: int, align_corners: bool) -> Any:
    """Bilinear or nearest pixels; coordinates, distances and weights are rounded too."""
    require(mode in (_BILINEAR, _NEAREST), "interpolation must be bilinear or nearest")
    x, y = (
        _coordinates(grid[..., axis], image.shape[3 - axis], padding, align_corners=align_corners).unsqueeze(1)
        for axis in range(2)
    )
    if mode == _NEAREST:
        return _pixels(image, x.round(), y.round())
    west, north = x.floor(), y.floor()
    w, n = x - west, y - north
    e, s = 1 - w, 1 - n
    top = _pixels(image, west, north) * (s * e) + _pixels(image, west, north, 1) * (s * w)
    return top + _pixels(image, west, north, 0, 1) * (n * e) + _pixels(image, west, north, 1, 1) * (n * w)


_BILINEAR, _NEAREST = 0, 1
_ZEROS, _BORDER = 0, 1
_OUTSIDE = -2.0
"""A coordinate whose pixel is in no image, and neither is the next one."""


def _coordinates(x: Any, extent: int, padding: int, *, align_corners: bool) -> Any:
    """-1 to 1 in pixels; outside numbers go to the border or are reflected at it, but where `padding` is zeros."""
    torch, last = pytorch_operators.torch_package(), extent - 1

    def rounded(number: float) -> float:
        return float(NUMPY_DTYPES[_SHORT_NAMES[str(x.dtype)]].type(number))

    x = (x + 1) * rounded(last / 2 if align_corners else extent / 2)
    x = x if align_corners else x - 0.5
    if padding == _ZEROS:
        return x
    require(rounded(last) <= last, f"extent must be 1 more than a number of the type, but got {extent}")
    if padding != _BORDER:
        low, span = (0.0, rounded(2 * last)) if align_corners else (-0.5, rounded(2 * extent))
        distance = (x - low).abs()
        rest = distance - (distance / span).trunc() * span
        x = torch.minimum(rest, span - rest) + low if span else x * 0
    # A NaN is at the first pixel.
    return torch.where(x > 0, x, 0.0).clamp(max=rounded(last))


_SHORT_NAMES = {"torch.bfloat16": "bf16", "torch.float16": "f16", "torch.float32": "f32"}


def _pixels(image: Any, x: Any, y: Any, right: int = 0, below: int = 0) -> Any:
    """The pixels right of and below whole coordinates (batch, 1, height, width); 0 outside of the image."""
    torch = pytorch_operators.torch_package()
    column, row = _whole(x, right), _whole(y, below)
    height, width = image.shape[2:]
    is_inside = (column >= 0) & (column < width) & (row >= 0) & (row < height)
    column, row = (torch.where(is_inside, one, 0) for one in (column, row))
    batch, channel = (torch.arange(n, device=image.device) for n in image.shape[:2])
    found = image[batch.view(-1, 1, 1, 1), channel.view(-1, 1, 1), row, column]
    return torch.where(is_inside, found, 0.0)


def _whole(x: Any, more: int) -> Any:
    """As PyTorch has whole numbers: small ones by the lowest 16 of 32 bits, or as 0 where those cannot hold them."""
    torch = pytorch_operators.torch_package()
    wide, is_small = x.float(), x.dtype != torch.float32
    whole = torch.where(wide.abs() < 2.0**31, wide, 0.0 if is_small else _OUTSIDE).to(torch.int64)
    if not is_small:
        return whole + more
    return ((whole + (_COUNTED + more)) & (2 * _COUNTED - 1)) - _COUNTED


_MAX_KEYS = 512
"""The block of keys that PyTorch's kernel of attention takes at once; the largest score of each block scales it."""


@_rounding("scaled_dot_product_attention.default")
def _attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: Any = False,
    *,
    scale: float | None = None,
    enable_gqa: Any = False,
) -> Any:
    is_fused = query.dim() == 4 and query.shape[-1] == key.shape[-1] == value.shape[-1] and not dropout_p
    is_fused = is_fused and (attn_mask is None or attn_mask.dim() in (2, 4))
    require(is_fused and key.shape[2] <= _MAX_KEYS, "attention rounds its result alone")
    if enable_gqa:
        key, value = (one.repeat_interleave(query.shape[1] // one.shape[1], 1) for one in (key, value))
    scores = query.float() @ key.float().transpose(2, 3) * (query.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        attn_mask = pytorch_operators.torch_package().ones(scores.shape[2:], dtype=bool, device="meta").tril()
    if attn_mask is not None:
        is_choice = str(attn_mask.dtype) == "torch.bool"
        scores = scores.masked_fill(~attn_mask, -math.inf) if is_choice else scores + attn_mask.float()
    largest = scores.amax(-1, keepdim=True)
    raised = (scores - largest).exp()
    total = raised.sum(-1, keepdim=True)
    if attn_mask is not None:
        raised, total = raised.masked_fill(largest == -math.inf, 0), total.masked_fill(largest == -math.inf, 1)
    return (raised.to(query.dtype).float() @ value.float() / total).to(query.dtype)


_RESIZING = tuple(f"aten.upsample_{how}.vec" for how in ("nearest1d", "nearest2d", "nearest3d"))
_BLENDING = tuple(f"aten.upsample_{how}" for how in ("linear1d", "bilinear2d", "bicubic2d", "trilinear3d"))
_INTERPOLATING = tuple(f"aten.upsample_{how}.vec" for how in ("linear1d", "bilinear2d", "trilinear3d"))


# What kernels compute where the decomposition in PyTorch's own table computes something else.


def _multi_margin_loss(
    x: Any, target: Any, p: float = 1, margin: float = 1, weight: Any = None, reduction: int = 1
) -> Any:
    """A distance that is not above 0 counts for nothing: PyTorch's decomposition gives NaN of a NaN."""
    torch = pytorch_operators.torch_package()
    rows, labels = torch.atleast_2d(x), torch.atleast_1d(target).unsqueeze(1)
    count = rows.shape[1]
    distance = margin - rows.gather(1, labels) + rows
    losses = distance if p == 1 else distance * distance
    losses = losses if weight is None else losses * weight[labels]
    is_counted = (torch.arange(count, device=x.device) != labels) & (distance > 0)
    losses = torch.where(is_counted, losses, 0)
    return (losses.mean(1).reshape(target.shape), losses.mean(), losses.sum() / count)[reduction]


def _multilabel_margin_loss(x: Any, target: Any, reduction: int) -> Any:
    """As above, and labels behind the first negative one are none: PyTorch's decomposition takes them for 0."""
    torch = pytorch_operators.torch_package()
    rows, labels = torch.atleast_2d(x), torch.atleast_2d(target)
    count = rows.shape[1]
    places = torch.arange(count, device=x.device)
    end = torch.where(labels < 0, places, count).amin(1, keepdim=True)
    is_label = places < end
    is_target = (places == torch.where(is_label, labels, -1).unsqueeze(-1)).any(1)
    own = rows.gather(1, torch.where(is_label, labels, 0))
    distance = 1.0 - own.T.unsqueeze(-1) + rows
    is_counted = is_label.T.unsqueeze(-1) & ~is_target & (distance > 0)
    losses = torch.where(is_counted, distance / count, 0).sum((0, -1))
    found = (losses.reshape(x.shape[:-1]), losses.mean(), losses.sum())[reduction]
    return found, is_target.to(x.dtype).reshape(target.shape)


def _plain_grid_sampler(image: Any, grid: Any, mode: int, padding: int, align_corners: bool) -> Any:
    """A NaN among coordinates is one of the result, or the first pixel: PyTorch's decomposition gives 0 for it."""
    if mode in (_BILINEAR, _NEAREST):
        return _grid_sampler(image, grid, mode, padding, align_corners)
    # Coordinates are computed once for all channels, as in PyTorch's own compiler.
    plain: Any = import_module("torch._decomp.decompositions")
    return plain._grid_sampler_2d(image, grid, mode, padding, align_corners, _expand_grid=image.shape[1] == 1)


def _upsample_linear(x: Any, output_size: Any, align_corners: bool, scale_factors: Any) -> Any:
    """Each neighbour by its share: PyTorch's decomposition takes their difference, which is NaN of two infinities."""
    torch = pytorch_operators.torch_package()
    extents, factors = x.shape[2:], scale_factors or (None,) * (x.dim() - 2)
    sizes = output_size or [math.floor(n * factor) for n, factor in zip(extents, factors, strict=True)]
    found = x.float()
    for axis in reversed(range(len(extents))):
        n, size, factor = extents[axis], sizes[axis], factors[axis]
        places = torch.arange(size, device=x.device).float()
        if align_corners:
            places = places * ((n - 1) / (size - 1) if size > 1 else 0)
        else:
            places = ((places + 0.5) * (1 / factor if factor else n / size) - 0.5).clamp(min=0)
        first = places.to(torch.int64)
        share = (places - first).clamp(0, 1).view(-1, *(1,) * (len(extents) - 1 - axis))
        second = (first + 1).clamp(max=n - 1)
        found = found.index_select(axis + 2, first) * (1 - share) + found.index_select(axis + 2, second) * share
    layout = import_module("torch._prims_common").suggest_memory_format(x)
    return found.to(x.dtype).contiguous(memory_format=layout)


def _unsafe_masked_index(x: Any, mask: Any, indices: Any, fill: Any) -> Any:
    """An index below 0 counts from the end: PyTorch's decomposition takes it for 0."""
    held = [index if index is None else index.clamp(-n, n - 1) for index, n in zip(indices, x.shape, strict=False)]
    return x[tuple(slice(None) if index is None else index for index in held)].masked_fill(~mask, fill)


_KERNELS: Mapping[str, Callable[..., Any]] = {
    "aten._unsafe_masked_index.default": _unsafe_masked_index,
    _GRID_SAMPLER: _plain_grid_sampler,
    **dict.fromkeys(_INTERPOLATING, _upsample_linear),
    "aten.multi_margin_loss.default": _multi_margin_loss,
    "aten.multilabel_margin_loss_forward.default": _multilabel_margin_loss,
}


@dataclass(frozen=True)
class Decomposition:
    """Nodes in order, constants among what they read, and for each result of the operator the name of what gives it."""

    nodes: tuple[Node, ...]
    constants: Mapping[str, Array]
    outputs: tuple[str, ...]
    is_single: bool
    """Whether the operator gives one tensor, not a list or several."""


def decompose(node: Node, tensors: Mapping[str, Output], *, is_rounding: bool = False) -> Decomposition:
    """The simpler operators of which PyTorch makes that of a node, given all tensors that the node reads.

    With `is_rounding` they are those that round what its kernel for small floats does.  The names of the parts begin
    with that of the node.  Raises `UnsupportedError` where PyTorch knows no simpler form.
    """
    schema = pytorch_operators.schema_of(node.kind)
    if schema is None or not node.kind.startswith(("aten.", "torchao.")) or is_in_place(node.kind):
        raise UnsupportedError("operator is not supported")
    names, node = node.refs(), _with_whole_scales(node, tensors)
    is_blended = node.kind.startswith(_BLENDING) and any(tensors[name].element == "ui8" for name in names)
    require(not is_blended, "operand must not be ui8: PyTorch's kernel multiplies and rounds in integers of its own")
    module = _traced(node, names, tensors, (_ROUNDING if is_rounding else _KERNELS).get(node.kind))
    try:
        graph, placeholders = read_traced(module, names)
    except ImportModelError as error:
        raise UnsupportedError(str(error)) from error
    # Below PyTorch's operators lie primitives, which are further from ours.
    is_simpler = all(part.kind != node.kind and not part.kind.startswith("prims.") for part in graph.nodes)
    require(is_simpler, "operator is not supported")

    def name_of(name: str) -> str:
        return placeholders.get(name, f"{node.name}.{name}")

    own = {"where": node.where, "origin": node.label}
    return Decomposition(
        tuple(replace(part.renamed(name_of), name=name_of(part.name), **own) for part in graph.nodes),
        {name_of(name): array for name, array in graph.constants.items()},
        tuple(map(name_of, graph.outputs)),
        [str(result.type) for result in schema.returns] == ["Tensor"],
    )


def _with_whole_scales(node: Node, tensors: Mapping[str, Output]) -> Node:
    """PyTorch's kernels copy a dimension that keeps its extent, and twice for nearest elements of one that doubles.

    Its decompositions scale coordinates by 1.1 where 6 elements become 6.
    """
    factors = node.arguments.get("scale_factors")
    if node.kind not in _RESIZING + _INTERPOLATING or not factors:
        return node
    whole, extents = (1.0, 2.0) if node.kind in _RESIZING else (1.0,), tensors[node.refs()[0]].shape[2:]
    pairs = list(zip(extents, factors, strict=True))
    exact = tuple(next((one for one in whole if math.floor(n * factor) == n * one), factor) for n, factor in pairs)
    return replace(node, arguments={**node.arguments, "scale_factors": exact})


def _traced(node: Node, names: tuple[str, ...], tensors: Mapping[str, Output], parts: Callable[..., Any] | None) -> Any:
    """The graph module of what the operator, or `parts` in its place, calls on tensors without memory."""
    torch = pytorch_operators.torch_package()
    examples = [
        torch.empty(tensors[name].shape, dtype=pytorch_operators.dtype_of(tensors[name].element), device="meta")
        for name in names
    ]
    table: Mapping[Any, Any] = import_module("torch._decomp").decomposition_table
    operator = pytorch_operators.operator_of(node.kind)
    own = {operator: table[operator]} if operator in table else {}
    trace: Any = import_module("torch.fx.experimental.proxy_tensor").make_fx

    def call(*given: Any) -> Any:
        held = dict(zip(names, given, strict=True))
        return pytorch_operators.call_operator(node, lambda name: held[name], "meta", parts)

    try:
        with torch.no_grad(), _counting(torch):
            return trace(call, decomposition_table=own, tracing_mode="real")(*examples)
    except UnsupportedError:
        raise
    except Exception as error:
        # Decompositions raise whatever they do, AssertionError among it.
        raise UnsupportedError(f"operator must take the arguments: {pytorch_operators.first_line(error)}") from error


def _counting(torch: Any) -> Any:
    """A mode that stops an operator which calls too many others."""
    base: Any = import_module("torch.utils._python_dispatch").TorchDispatchMode

    class Counting(base):
        """Counts calls."""

        calls = 0

        def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            self.calls += 1
            require(self.calls <= _MAX_NODES, f"operator must not be made of more than {_MAX_NODES} others")
            return function(*args, **(kwargs or {}))

    return Counting()
