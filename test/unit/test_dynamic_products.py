"""Compiled products with parameters known at run time equal the reference on every target."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from together import check_compiled, variants_together

from qdialect.dialect import DynamicConv2DOp, DynamicDenseOp, build
from qdialect.dialect.constants import constant
from qdialect.ir._mlir import func, ir
from qdialect.ir.context import make_context
from qdialect.lowering.ir.lowered import Phase
from qdialect.lowering.pipeline.phases import lower
from qdialect.reference import interpreter
from qdialect.runtime import compile_module
from qdialect.support.diagnostics import CompileError
from qdialect.targets import resolve

Array = NDArray[Any]
TARGETS = ("generic", "host")


def tensor(shape: tuple[int, ...], element: str) -> ir.Type:
    return ir.RankedTensorType.get(list(shape), ir.Type.parse(element))


class Product:
    """A module with one product, its data and parameters, drawn from a seed."""

    def __init__(
        self,
        op_class: type[DynamicConv2DOp | DynamicDenseOp],
        data: tuple[int, ...],
        weight: tuple[int, ...],
        element: str = "ui8",
        weight_points: bool = False,
        bias: bool = True,
        rows: tuple[int, ...] = (),
        known: tuple[str, ...] = (),
        **attributes: Any,
    ) -> None:
        rng = np.random.default_rng(5)
        dtype, low = (np.uint8, 0) if element == "ui8" else (np.int8, -128)
        channels = weight[0]
        self.arrays: dict[str, Array] = {
            "data": rng.integers(low, low + 256, data).astype(dtype),
            "scale": np.asarray(rng.uniform(0.001, 0.1, rows), np.float32),
            "zero_point": np.asarray(rng.integers(low, low + 256, rows), dtype),
        }
        with make_context(), ir.Location.unknown():
            self.module = ir.Module.create()
            inputs = {name: array for name, array in self.arrays.items() if name not in known}
            types = [tensor(a.shape, "f32" if a.dtype == np.float32 else element) for a in inputs.values()]
            with ir.InsertionPoint(self.module.body):
                main = func.FuncOp("main", (types, []))
            block = main.add_entry_block()
            with ir.InsertionPoint(block):
                held = dict(zip(inputs, block.arguments, strict=True))
                held |= {name: constant(self.arrays[name]) for name in known}
                op = build(
                    op_class,
                    held["data"],
                    constant(rng.integers(-128, 128, weight).astype(np.int8)),
                    held["scale"],
                    held["zero_point"],
                    constant(rng.normal(size=channels).astype(np.float32)) if bias else None,
                    element="f32",
                    weight_scales=tuple(rng.uniform(0.001, 0.1, channels).tolist()),
                    weight_zero_points=tuple(rng.integers(-128, 128, channels).tolist()) if weight_points else (0,),
                    **attributes,
                )
                func.ReturnOp([op.output])
            signature = ir.FunctionType.get(types, [op.output.type])
            main.attributes["function_type"] = ir.TypeAttr.get(signature)
        self.inputs = list(inputs.values())

    def check(self, target: str, threads: int = 1) -> None:
        (wanted,) = interpreter.run(self.module, self.inputs)
        if threads == 1:
            check_compiled(self.module, target, [self.inputs], [[wanted]])
        else:
            found = compile_module(self.module, target=target, threads=threads)(*self.inputs)
            np.testing.assert_array_equal(found, wanted)


@variants_together
@pytest.mark.parametrize("number", range(4))
@pytest.mark.parametrize("data", [(1, 7), (37, 64), (1, 2, 3, 33)])
def test_dense(data: tuple[int, ...], number: int) -> None:
    channels, target = (1, 3, 19, 70)[number], TARGETS[(number + len(data) + data[0]) % 2]
    weight = (channels, data[-1])
    Product(DynamicDenseOp, data, weight).check(target)
    Product(DynamicDenseOp, data, weight, "i8", weight_points=True, bias=False, rows=(*data[:-1], 1)).check(target)


@variants_together
@pytest.mark.parametrize("known", [("scale",), ("zero_point",), ("scale", "zero_point")])
@pytest.mark.parametrize("element", ["i8", "ui8"])
def test_constant_parameters_are_folded(known: tuple[str, ...], element: str) -> None:
    product = Product(DynamicDenseOp, (5, 18), (9, 18), element, known=known)
    product.check("host")


@variants_together
@pytest.mark.parametrize("known", [(), ("scale",), ("zero_point",), ("scale", "zero_point")])
@pytest.mark.parametrize("rows", [(), (5, 1)])
def test_scales_that_are_multiplied_last(known: tuple[str, ...], rows: tuple[int, ...]) -> None:
    of_data = () if known else rows
    Product(DynamicDenseOp, (5, 18), (33, 18), rows=of_data, known=known, scale_last=True).check("host")
    Product(DynamicConv2DOp, (1, 6, 7, 3), (5, 3, 3, 3), known=known, scale_last=True).check("host")


@variants_together
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("data", "weight", "attributes"),
    [
        ((1, 6, 7, 3), (5, 3, 3, 3), {}),
        ((2, 9, 8, 8), (16, 3, 2, 4), {"groups": 2, "strides": (2, 1), "dilation": (1, 2)}),
        ((1, 7, 7, 8), (8, 3, 3, 2), {"groups": 4}),
        ((1, 9, 11, 24), (24, 3, 3, 1), {"groups": 24}),
        ((2, 12, 12, 64), (64, 3, 3, 1), {"groups": 64, "strides": (2, 2)}),
        ((1, 5, 5, 6), (6, 5, 5, 1), {"groups": 6}),
    ],
)
def test_convolution(data: tuple[int, ...], weight: tuple[int, ...], attributes: dict[str, Any], target: str) -> None:
    Product(DynamicConv2DOp, data, weight, **attributes).check(target)
    Product(DynamicConv2DOp, data, weight, "i8", weight_points=True, bias=False, rows=(1,), **attributes).check(target)


@variants_together
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("groups", [1, 24])
@pytest.mark.parametrize("element", ["i8", "ui8"])
def test_padding_is_a_known_zero_point(element: str, groups: int, target: str) -> None:
    weight = (24, 3, 3, 24 // groups)
    how: dict[str, Any] = {"padding": (0, 1, 2, 1), "groups": groups, "strides": (2, 1)}
    Product(DynamicConv2DOp, (2, 9, 7, 24), weight, element, known=("zero_point",), **how).check(target)


def test_threads_compute_the_same() -> None:
    Product(DynamicDenseOp, (64, 96), (80, 96), rows=(64, 1)).check("host", threads=2)


@pytest.mark.parametrize("weight_points", [False, True])
@pytest.mark.parametrize(
    ("data", "rows"), [((37, 64), ()), ((37, 68), (37, 1)), ((2, 5, 17, 64), (2, 5, 17, 1)), ((1, 49, 72), (1, 49, 1))]
)
def test_matrix_tiles_have_parameters_by_row(data: tuple[int, ...], rows: tuple[int, ...], weight_points: bool) -> None:
    product = Product(DynamicDenseOp, data, (40, data[-1]), "i8", weight_points=weight_points, rows=rows)
    assert 'tdpbusd"' in str(lower(product.module, resolve("amxint8"), Phase.X86).module)
    for threads in (1, 2):
        product.check("amxint8,portable", threads)


def test_a_convolution_in_matrix_tiles_has_run_time_parameters() -> None:
    product = Product(DynamicConv2DOp, (2, 9, 21, 64), (40, 3, 3, 64), strides=(1, 2))
    assert 'tdpbusd"' in str(lower(product.module, resolve("amxint8"), Phase.X86).module)
    product.check("amxint8,portable")


@pytest.mark.parametrize("weight_points", [False, True])
@pytest.mark.parametrize(("data", "rows"), [((37, 68), ()), ((2, 5, 7, 131), (2, 5, 7, 1))])
def test_words_have_parameters_by_row(data: tuple[int, ...], rows: tuple[int, ...], weight_points: bool) -> None:
    product = Product(DynamicDenseOp, data, (70, data[-1]), "i8", weight_points=weight_points, rows=rows)
    assert 'qnn.label = "words"' in str(lower(product.module, resolve("avx2"), Phase.LINALG).module)
    for threads in (1, 2):
        product.check("avx2,portable", threads)


def test_an_infinite_bias_is_refused() -> None:
    product = Product(DynamicDenseOp, (2, 4), (3, 4))
    text = str(product.module)
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        add_infinity(module)
        with pytest.raises(CompileError, match="bias must be finite to be compiled"):
            compile_module(module)


def add_infinity(module: ir.Module) -> None:
    """The bias of the module's product as infinities."""
    block = module.body.operations[0].regions[0].blocks[0]
    product = next(op for op in block.operations if isinstance(op, DynamicDenseOp))
    with ir.InsertionPoint(product):
        product.operation.operands[4] = constant(np.full(3, np.inf, np.float32))
