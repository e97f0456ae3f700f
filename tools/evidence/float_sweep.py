"""Measures float functions over the whole range of float32 beside their frameworks.

    .venv/bin/python -m tools.evidence.float_sweep [NAME ...]

Prints a table: function, framework, the largest distance in units of the last place and where it is, and how often an
end (infinity, NaN, the sign of a zero) is another.  A result is as far as it is from the framework's or from the truth,
which is what PyTorch computes in float64, whichever is nearer; where the framework itself is far from the truth, at
numbers near by or in a sum whose terms cancel out, it may be as far.  Names choose functions, and frameworks.

The numbers have every exponent, with fractions that end in zeros and ones and drawn ones; those near 0, 1 and multiples
of a half and of pi/2 are dense.  Functions of two numbers take pairs of them, others rows.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
import tflite
from numpy.typing import NDArray
from torch.nn import Module

import qdialect
from qdialect.bench.onnx_writer import CONTRIB, GraphWriter
from qdialect.frontends import frameworks
from qdialect.frontends.onnx import import_onnx
from qdialect.frontends.tflite import import_tflite
from qdialect.frontends.tflite.flatbuffer.writer import ModelWriter
from qdialect.frontends.torch import import_torch
from qdialect.support.diagnostics import QDialectError

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]
Function = Callable[..., Any]
LIMIT = 4.0
"""Units of the last place."""

Unary = Callable[[Any], Any]
Binary = Callable[[Any, Any], Any]

torch: Any = import_module("torch")
F: Any = import_module("torch.nn.functional")
_SPECIAL: Any = import_module("torch.special")

UNARY: Mapping[str, Unary] = {
    **{
        name: getattr(torch, name)
        for name in (
            *("abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "ceil", "cos", "cosh", "deg2rad", "digamma"),
            *("erf", "erfc", "erfinv", "exp", "exp2", "expm1", "floor", "frac", "i0", "lgamma", "log", "log10"),
            *("log1p", "log2", "neg", "rad2deg", "reciprocal", "round", "rsqrt", "sgn", "sigmoid", "sign", "sin"),
            *("sinc", "sinh", "sqrt", "square", "tan", "tanh", "trunc", "logit", "nan_to_num", "relu"),
        )
    },
    **{
        name: getattr(F, name)
        for name in (
            *("celu", "elu", "gelu", "hardshrink", "hardsigmoid", "hardswish", "hardtanh", "leaky_relu", "logsigmoid"),
            *("mish", "relu6", "selu", "silu", "softplus", "softshrink", "softsign", "tanhshrink"),
        )
    },
    "elu alpha": lambda x: F.elu(x, 0.3),
    "celu alpha": lambda x: F.celu(x, 0.3),
    "gelu tanh": lambda x: F.gelu(x, approximate="tanh"),
    "softplus beta": lambda x: F.softplus(x, 3.0, 5.0),
    "threshold": lambda x: F.threshold(x, 0.5, -2.0),
    "logit eps": lambda x: torch.logit(x, 1e-3),
    "round decimals": lambda x: torch.round(x, decimals=2),
    "clamp": lambda x: torch.clamp(x, -0.7, 1.3),
    "log_ndtr": _SPECIAL.log_ndtr,
    "ndtr": _SPECIAL.ndtr,
    "entr": _SPECIAL.entr,
    "i0e": _SPECIAL.i0e,
    "erfcx": _SPECIAL.erfcx,
    **{
        f"pow {power}": lambda x, power=power: x**power for power in (0.5, -0.5, 1, 2, 3, 4, 7, -1, -2, -3, 0.3, 2.7, 0)
    },
    **{f"{base} pow": lambda x, base=base: base**x for base in (2.0, 10.0, 0.3, 1.0)},
    "mul": lambda x: x * 0.1,
    "div": lambda x: x / 3,
    "rdiv": lambda x: 3 / x,
    "fmod number": lambda x: torch.fmod(x, 2.5),
    "remainder number": lambda x: torch.remainder(x, -2.5),
    "floor_divide number": lambda x: x // 0.3,
}
BINARY: Mapping[str, Binary] = {
    **{
        name: getattr(torch, name)
        for name in (
            *("add", "sub", "mul", "div", "atan2", "copysign", "floor_divide", "fmax", "fmin", "fmod", "heaviside"),
            *("hypot", "ldexp", "logaddexp", "logaddexp2", "maximum", "minimum", "nextafter", "pow", "remainder"),
            *("xlogy", "true_divide", "rsub"),
        )
    },
    "div floor": lambda x, y: torch.div(x, y, rounding_mode="floor"),
    "div trunc": lambda x, y: torch.div(x, y, rounding_mode="trunc"),
    "xlog1py": _SPECIAL.xlog1py,
    "addcmul": lambda x, y: torch.addcmul(x, x, y, value=0.5),
    "addcdiv": lambda x, y: torch.addcdiv(x, x, y, value=0.5),
    "lerp": lambda x, y: torch.lerp(x, y, 0.3),
    "lerp high": lambda x, y: torch.lerp(x, y, 0.8),
    "prelu": lambda x, y: F.prelu(x, y[:1]),
    "smooth_l1_loss": lambda x, y: F.smooth_l1_loss(x, y, reduction="none"),
    "huber_loss": lambda x, y: F.huber_loss(x, y, reduction="none"),
    "mse_loss": lambda x, y: F.mse_loss(x, y, reduction="none"),
    "glu": lambda x, y: F.glu(torch.stack([x, y], -1), -1)[..., 0],
}
ROWS: Mapping[str, Unary] = {
    "softmax": lambda x: torch.softmax(x, -1),
    "log_softmax": lambda x: torch.log_softmax(x, -1),
    "softmin": lambda x: F.softmin(x, -1),
    "logsumexp": lambda x: torch.logsumexp(x, -1),
    "mean": lambda x: x.mean(-1),
    "sum": lambda x: x.sum(-1),
    "prod": lambda x: x.prod(-1),
    "amax": lambda x: x.amax(-1),
    "amin": lambda x: x.amin(-1),
    "var": lambda x: x.var(-1),
    "std": lambda x: x.std(-1),
    "var biased": lambda x: x.var(-1, correction=0),
    "norm": lambda x: torch.linalg.vector_norm(x, dim=-1),
    "norm 1": lambda x: torch.linalg.vector_norm(x, 1, dim=-1),
    "norm 3": lambda x: torch.linalg.vector_norm(x, 3, dim=-1),
    "normalize": lambda x: F.normalize(x, dim=-1),
    "layer_norm": lambda x: F.layer_norm(x, x.shape[-1:]),
    "rms_norm": lambda x: F.rms_norm(x, x.shape[-1:]),
    "cumsum": lambda x: x.cumsum(-1),
    "cumprod": lambda x: x.cumprod(-1),
    "cosine": lambda x: F.cosine_similarity(x, x.flip(-1), dim=-1),
}
"""Of the rows of a matrix."""
_ONNX_UNARY: Mapping[str, tuple[str, Unary, Mapping[str, Any]]] = {
    **{
        kind: (kind, getattr(torch, kind.lower()), {})
        for kind in (
            *("Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Cos", "Cosh", "Erf", "Exp", "Floor"),
            *("Log", "Neg", "Reciprocal", "Round", "Sigmoid", "Sign", "Sin", "Sinh", "Sqrt", "Tan", "Tanh", "Relu"),
        )
    },
    "Celu": ("Celu", lambda x: F.celu(x, 0.5), {"alpha": 0.5}),
    "Elu": ("Elu", lambda x: F.elu(x, 0.5), {"alpha": 0.5}),
    "Gelu": ("Gelu", F.gelu, {}),
    "Gelu tanh": ("Gelu", lambda x: F.gelu(x, approximate="tanh"), {"approximate": "tanh"}),
    "HardSigmoid": ("HardSigmoid", lambda x: (x * 0.2 + 0.5).clamp(0, 1), {}),
    "HardSwish": ("HardSwish", F.hardswish, {}),
    "LeakyRelu": ("LeakyRelu", F.leaky_relu, {"alpha": 0.01}),
    "Mish": ("Mish", F.mish, {}),
    "Selu": ("Selu", F.selu, {}),
    "Shrink": ("Shrink", lambda x: F.softshrink(x, 0.3), {"lambd": 0.3, "bias": 0.3}),
    "Softplus": ("Softplus", F.softplus, {}),
    "Softsign": ("Softsign", F.softsign, {}),
    "ThresholdedRelu": ("ThresholdedRelu", lambda x: F.threshold(x, 1.0, 0.0), {}),
    "QuickGelu": (f"{CONTRIB}.QuickGelu", lambda x: x * torch.sigmoid(1.702 * x), {"alpha": 1.702}),
}
_ONNX_BINARY: Mapping[str, tuple[str, Binary, Mapping[str, Any]]] = {
    "Add": ("Add", torch.add, {}),
    "Sub": ("Sub", torch.sub, {}),
    "Mul": ("Mul", torch.mul, {}),
    "Div": ("Div", torch.div, {}),
    "Max": ("Max", torch.maximum, {}),
    "Min": ("Min", torch.minimum, {}),
    "Mod": ("Mod", torch.fmod, {"fmod": 1}),
    "Pow": ("Pow", torch.pow, {}),
    "PRelu": ("PRelu", lambda x, y: torch.where(x > 0, x, x * y), {}),
}
_ONNX_ROWS: Mapping[str, tuple[str, Unary, Mapping[str, Any]]] = {
    "Softmax": ("Softmax", ROWS["softmax"], {"axis": -1}),
    "LogSoftmax": ("LogSoftmax", ROWS["log_softmax"], {"axis": -1}),
    "ReduceLogSumExp": ("ReduceLogSumExp", lambda x: torch.logsumexp(x, -1), {"keepdims": 0}),
    "ReduceLogSum": ("ReduceLogSum", lambda x: x.sum(-1).log(), {"keepdims": 0}),
    "ReduceL2": ("ReduceL2", ROWS["norm"], {"keepdims": 0}),
    "ReduceL1": ("ReduceL1", ROWS["norm 1"], {"keepdims": 0}),
    "ReduceSumSquare": ("ReduceSumSquare", lambda x: x.square().sum(-1), {"keepdims": 0}),
    "ReduceMean": ("ReduceMean", ROWS["mean"], {"keepdims": 0}),
    "ReduceProd": ("ReduceProd", ROWS["prod"], {"keepdims": 0}),
    "LpNormalization": ("LpNormalization", lambda x: x / x.square().sum(-1, keepdim=True).sqrt(), {"axis": -1}),
}
_TFLITE_UNARY: Mapping[str, Unary] = {
    **{name.upper(): getattr(torch, name) for name in ("abs", "ceil", "cos", "exp", "floor", "log", "neg", "round")},
    **{name.upper(): getattr(torch, name) for name in ("rsqrt", "sign", "sin", "sqrt", "square", "tanh", "relu")},
    "ELU": F.elu,
    "GELU": F.gelu,
    "HARD_SWISH": F.hardswish,
    "LOGISTIC": torch.sigmoid,
    "RELU6": F.relu6,
}
_TFLITE_BINARY: Mapping[str, Binary] = {
    "ADD": torch.add,
    "SUB": torch.sub,
    "MUL": torch.mul,
    "DIV": torch.div,
    "FLOOR_DIV": lambda x, y: torch.floor(x / y),
    "FLOOR_MOD": torch.remainder,
    "MAXIMUM": torch.maximum,
    "MINIMUM": torch.minimum,
    "POW": torch.pow,
    "SQUARED_DIFFERENCE": lambda x, y: (x - y).square(),
    "ATAN2": torch.atan2,
    "PRELU": lambda x, y: torch.where(x >= 0, x, x * y),
}
_TFLITE_ROWS: Mapping[str, Unary] = {"LOG_SOFTMAX": ROWS["log_softmax"]}


def numbers(seed: int = 0, fractions: int = 3) -> F32:
    """Numbers of every exponent and dense ones near where functions change, with zeros, infinities and NaN."""
    rng = np.random.default_rng(seed)
    exponents = np.arange(255, dtype=np.uint32)[:, None] << 23
    ends = np.array([0, 1, 1 << 22, (1 << 23) - 1], dtype=np.uint32)
    drawn = rng.integers(0, 1 << 23, (255, fractions)).astype(np.uint32)
    bits = np.concatenate([exponents + ends, exponents + drawn], 1).view(np.float32).ravel()
    steps = np.float32(2.0) ** np.arange(-24, -2, dtype=np.float32)
    near = np.concatenate(
        [[k * h] + [k * h + s * step for s in (1, -1) for step in steps] for k in range(1, 9) for h in (0.5, np.pi / 2)]
    )
    dense = [np.linspace(0, end, count) for end, count in ((1, 301), (8, 801), (20, 601), (110, 801), (1000, 201))]
    found = np.concatenate([bits, near, *dense]).astype(np.float32)
    return np.concatenate([found, -found, [np.inf, -np.inf, np.nan]]).astype(np.float32)


def pairs(seed: int = 0) -> tuple[F32, F32]:
    """Pairs of a few numbers of each kind with each other, of equal ones, and of drawn ones of like and other sizes."""
    rng = np.random.default_rng(seed)
    sizes = (
        *(0, 1e-45, 1e-40, 1.1754944e-38, 1e-30, 1e-20, 1e-7, 0.1, 0.5, 0.75, 1, 1.0000001, 1.5, 2, 3, 7.3, 10),
        *(87, 100, 1e5, 16777216, 1e10, 1.8e19, 1e20, 1e30, 3.4e38, np.inf),
    )
    some = np.array(sizes, np.float32)
    some = np.concatenate([some, -some, [np.nan]]).astype(np.float32)
    x, y = (part.ravel() for part in np.meshgrid(some, some))
    every = rng.permutation(numbers(seed, 1))
    other = rng.permutation(every)
    with np.errstate(over="ignore"):
        like = (every * rng.uniform(0.2, 5, every.shape)).astype(np.float32)
    near = rng.normal(size=(2, 3000)).astype(np.float32) * 5
    return np.concatenate([x, every, every, near[0]]), np.concatenate([y, other, like, near[1]])


def rows(seed: int = 0) -> F32:
    """Rows of eight numbers of like sizes, for each size, and some with zeros, infinities and NaN."""
    rng = np.random.default_rng(seed)
    scales = np.float32(10.0) ** np.arange(-44, 39, dtype=np.float32)
    found = [scale * rng.uniform(-1, 1, (4, 8)) for scale in scales] + [
        scale * rng.uniform(0.5, 3.4, (2, 8)) for scale in scales
    ]
    shifted = [rng.normal(size=(2, 8)) + shift for shift in (-1e4, -100, -10, 10, 100, 1e4)]
    ends = rng.normal(size=(16, 8))
    for index, value in enumerate((np.inf, -np.inf, np.nan, 0.0, -0.0, 3.4e38, -3.4e38, 1e-45) * 2):
        ends[index, :: 1 + index % 3] = value
    ends[-1] = 0
    with np.errstate(over="ignore"):
        return np.concatenate([*found, *shifted, ends, np.full((1, 8), -np.inf)]).astype(np.float32)


@dataclass(frozen=True)
class Row:
    """What was measured of a function; `reason` says why it was not."""

    name: str
    framework: str
    ulp: float = 0.0
    where: str = ""
    ends: int = 0
    """How many infinities, NaNs and signs of zeros are others."""
    where_ends: str = ""
    reason: str = ""

    @property
    def is_right(self) -> bool:
        """Whether all results are within `LIMIT`, or the function is refused."""
        return self.ulp <= LIMIT and not self.ends

    def __str__(self) -> str:
        if self.reason:
            return f"{self.name:22} {self.framework:13} refused: {self.reason}"
        ends = f"  {self.ends} ends, at {self.where_ends}" if self.ends else ""
        return f"{self.name:22} {self.framework:13} {self.ulp:10.4g}  {self.where}{ends}"


def compared(name: str, framework: str, inputs: Sequence[F32], found: F32, theirs: F32, truth: F64) -> Row:
    """The row of results of `inputs`, beside those of the framework and of float64."""
    is_zero_signed = name.lower() not in _ZEROS
    least = _terms(inputs[0], truth) if name.lower().removeprefix("reduce") in _SUMS else 0.0
    measure = partial(_distance, is_zero_signed=is_zero_signed, least=least)
    ours, own, distance = measure(found, truth), measure(theirs, truth), measure(found, theirs.astype(np.float64))
    distance = np.minimum(ours, distance)
    spread = _spread(inputs[0] if len(inputs) == 1 else np.abs(truth), np.where(np.isinf(own), 0, own))
    # As far from the truth as the framework is.
    distance = np.where(np.isinf(ours) | (ours > 2 * spread), distance, np.minimum(distance, LIMIT))
    is_end = np.isinf(distance)
    finite = np.where(is_end, 0, distance).ravel()
    worst = int(np.argmax(finite))
    told = _told(inputs, found, theirs, truth, worst) if finite[worst] > 0 else ""
    ended = _told(inputs, found, theirs, truth, int(np.argmax(is_end))) if is_end.any() else ""
    return Row(name, framework, float(finite[worst]), told, int(is_end.sum()), ended)


_ZEROS = frozenset(["max", "maximum", "min", "minimum", "relu", "relu6", "clamp", "cumsum"])
"""Functions of whose zeros the sign is left open: vector code of the frameworks has another than their scalar code."""
_NEAR = 16


def _spread(x: F32, distance: F64) -> F64:
    """The largest of the distances at the numbers next to each one."""
    if x.shape != distance.shape:
        return distance
    order = np.argsort(x.ravel(), kind="stable")
    padded = np.pad(distance.ravel()[order], _NEAR)
    largest = np.lib.stride_tricks.sliding_window_view(padded, 2 * _NEAR + 1).max(-1)
    found = np.empty_like(largest)
    found[order] = largest
    return found.reshape(distance.shape)


_SUMS = ("mean", "sum", "cumsum")


def _terms(x: F32, truth: F64) -> F64:
    """The sums of the sizes of the terms: what is rounded away of them is not in their sum."""
    sizes = np.abs(x.astype(np.float64)).sum(-1)
    return np.broadcast_to(sizes.reshape(sizes.shape + (1,) * (truth.ndim - sizes.ndim)), truth.shape)


def _distance(found: F32, wanted: F64, *, is_zero_signed: bool, least: F64 | float) -> F64:
    """In units of the last place, of numbers of at least a size; infinite where an end differs."""
    with np.errstate(all="ignore"):
        rounded = wanted.astype(np.float32)
        size = np.maximum(np.abs(wanted), least)
        exponent = np.where(np.isfinite(size), np.maximum(np.frexp(size)[1] - 1, -126), 0)
        distance = np.abs(found.astype(np.float64) - wanted) / np.ldexp(1.0, exponent - 23)
    same = (found == rounded) | (np.isnan(found) & np.isnan(rounded))
    is_end = ~(np.isfinite(found) & np.isfinite(rounded))
    is_turned = is_zero_signed & (found == 0) & (rounded == 0) & (np.signbit(found) != np.signbit(wanted))
    return np.where(is_turned, np.inf, np.where(is_end, np.where(same, 0.0, np.inf), distance))


def _told(inputs: Sequence[F32], found: F32, theirs: F32, truth: F64, index: int) -> str:
    where = np.unravel_index(index, found.shape)
    place = where[: inputs[0].ndim] if found.ndim >= inputs[0].ndim else where
    given = ", ".join(str(np.asarray(one[place]).tolist()) for one in inputs)
    return f"f({given}) = {found[where]!s}, theirs {theirs[where]!s}, truth {truth[where]:.9g}"


class _Module(Module):
    def __init__(self, function: Function) -> None:
        super().__init__()
        self.function = function

    def forward(self, *given: Any) -> Any:
        return self.function(*given)


def of_torch(function: Function, inputs: Sequence[F32]) -> tuple[F32, F32]:
    """What is compiled of a program of one function gives, and what PyTorch gives."""
    given: tuple[Any, ...] = tuple(map(torch.from_numpy, inputs))
    export: Any = import_module("torch.export").export
    program = export(_Module(function), given)
    return _compiled(import_torch(program), inputs), function(*given).numpy()


def of_onnx(kind: str, attributes: Mapping[str, Any], inputs: Sequence[F32], truth: F64) -> tuple[F32, F32]:
    """The same of a model of one node, beside ONNX Runtime."""
    writer = GraphWriter()
    names = ["x", "y"][: len(inputs)]
    given = list(names)
    if kind.startswith("Reduce"):
        given.append(writer.constant(np.array([-1], np.int64)))
    result = writer.node(kind, given, **attributes)
    ports = [(name, one.shape, "FLOAT") for name, one in zip(names, inputs, strict=True)]
    content = writer.model(ports, [(result, truth.shape, "FLOAT")], opset=20)
    (theirs,) = frameworks.load_onnx_runtime(content, names, [result], 1)(inputs)
    return _compiled(import_onnx(content), inputs), np.asarray(theirs)


def of_tflite(kind: str, inputs: Sequence[F32], truth: F64) -> tuple[F32, F32]:
    """The same of a model of one operator, beside LiteRT's kernels."""
    writer = ModelWriter("one operator")
    tensors = [writer.tensor(f"x{index}", one.shape, np.float32) for index, one in enumerate(inputs)]
    output = writer.tensor("y", truth.shape, np.float32)
    name = f"{kind.title()}Options"
    options: Any = getattr(tflite.BuiltinOptions, name, 0), _options(name) if hasattr(tflite, name) else None
    writer.operator(getattr(tflite.BuiltinOperator, kind), tensors, output, *options)
    content = writer.finish(tensors, [output])
    (theirs,) = frameworks.load_litert(content, 1, is_reference=kind not in _OPTIMIZED)(inputs)
    return _compiled(import_tflite(content), inputs), np.asarray(theirs)


_OPTIMIZED = ("CEIL", "ROUND", "ELU")
"""The set of reference kernels lacks them."""


def _options(name: str) -> Callable[[Any], int]:
    def write(builder: Any) -> int:
        getattr(tflite, f"{name}Start")(builder)
        return getattr(tflite, f"{name}End")(builder)

    return write


def _compiled(module: Any, inputs: Sequence[F32]) -> F32:
    executable: Any = qdialect.compile(module, cache=False)
    return executable(*inputs)


Run = Callable[[Sequence[F32], F64], tuple[F32, F32]]


@dataclass(frozen=True)
class Subject:
    """A function of a framework: `run` gives our results and theirs, `function` the truth in float64."""

    name: str
    framework: str
    inputs: str
    function: Function
    run: Run

    def row(self, inputs: Sequence[F32]) -> Row:
        """What is measured of it."""
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                truth = self.function(*(torch.from_numpy(one).double() for one in inputs)).numpy()
                found, theirs = self.run(inputs, truth)
            except QDialectError as error:
                return Row(self.name, self.framework, reason=str(error).splitlines()[-1].strip())
            return compared(self.name, self.framework, inputs, found, theirs, truth)


def subjects() -> Iterator[Subject]:
    """All functions."""
    for kind, functions in (("one", UNARY), ("two", BINARY), ("rows", ROWS)):
        for name, function in functions.items():
            yield Subject(name, "PyTorch", kind, function, partial(_in_torch, function))
    for kind, table in (("one", _ONNX_UNARY), ("two", _ONNX_BINARY), ("rows", _ONNX_ROWS)):
        for name, (operator, function, attributes) in table.items():
            yield Subject(name, "ONNX Runtime", kind, function, partial(of_onnx, operator, attributes))
    for kind, functions in (("one", _TFLITE_UNARY), ("two", _TFLITE_BINARY), ("rows", _TFLITE_ROWS)):
        for name, function in functions.items():
            yield Subject(name, "LiteRT", kind, function, partial(of_tflite, name))


def _in_torch(function: Function, inputs: Sequence[F32], _: F64) -> tuple[F32, F32]:
    return of_torch(function, inputs)


def measured(words: Sequence[str] = ()) -> Iterator[Row]:
    """The rows of the functions and frameworks with these names; of all without any."""
    given: Mapping[str, Sequence[F32]] = {"one": (numbers(),), "two": pairs(), "rows": (rows(),)}
    for subject in subjects():
        if not words or not {subject.name, subject.framework}.isdisjoint(words):
            yield subject.row(_without_zero_divisors(subject, given[subject.inputs]))


def _without_zero_divisors(subject: Subject, inputs: Sequence[F32]) -> Sequence[F32]:
    """LiteRT refuses a call with one."""
    if subject.name != "FLOOR_DIV":
        return inputs
    kept = inputs[1] != 0
    return [one[kept] for one in inputs]


def main(words: Sequence[str]) -> int:
    """Print the table; the exit status says whether all is right."""
    found: list[Row] = []
    for row in measured(words):
        print("  " if row.is_right else "! ", row, flush=True, sep="")
        found.append(row)
    refused = sum(bool(row.reason) for row in found)
    off = sum(not row.is_right for row in found)
    print(f"{len(found)} functions: {off} off, {refused} refused")
    return 1 if off else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
