"""Einsum, triangles, one-hot vectors and norms: operators that become several ops."""

from typing import Any

import numpy as np
import pytest
from onnx_evaluated import check, drawn, expected, found_by, refused
from onnx_graphs import ModelBuilder
from together import variants_together
from tolerances import assert_floats_within

EINSUMS = [
    ("bhid,bhjd->bhij", (2, 3, 5, 4), (2, 3, 7, 4)),
    ("bhij,bhjd->bhid", (2, 3, 5, 7), (2, 3, 7, 4)),
    ("bij,jk->bik", (2, 5, 7), (7, 4)),
    ("ij,jk", (5, 7), (7, 4)),
    ("...ij,...jk->...ik", (2, 3, 5, 7), (2, 3, 7, 4)),
    ("bi,bj->bij", (2, 5), (2, 4)),
    ("i,i->", (5,), (5,)),
    ("bqnd,bknd->bnqk", (2, 5, 3, 4), (2, 7, 3, 4)),
    ("bnqk,bknd->bqnd", (2, 3, 5, 7), (2, 7, 3, 4)),
    ("ijk,ik->j", (3, 4, 5), (3, 5)),
]


@variants_together
@pytest.mark.parametrize(("equation", "lhs", "rhs"), EINSUMS)
def test_sums_of_products_by_their_labels(equation: str, lhs: tuple[int, ...], rhs: tuple[int, ...]) -> None:
    """Of small whole numbers, whose sums are exact in every order."""
    check("Einsum", [drawn(lhs, np.float32), drawn(rhs, np.float32, 1)], equation=equation)


@variants_together
@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("nlhd,nhmd,nlh->nlhm", [(2, 5, 3, 4), (2, 3, 6, 4), (2, 5, 3)]),
        ("ij,jk,kl->il", [(3, 4), (4, 5), (5, 2)]),
        ("i,j,ij,i->", [(3,), (4,), (3, 4), (3,)]),
    ],
)
def test_products_of_more_than_two(equation: str, shapes: list[tuple[int, ...]]) -> None:
    operands = [drawn(shape, np.float32, seed) for seed, shape in enumerate(shapes)]
    check("Einsum", operands, equation=equation)


@variants_together
@pytest.mark.parametrize("equation", ["ijk->kij", "ijk->ik", "...k->k...", "ijk->"])
def test_labels_of_one_tensor(equation: str) -> None:
    check("Einsum", [drawn((2, 3, 5), np.float32)], equation=equation)


def test_equations_that_do_not_fit_are_refused() -> None:
    cases = {
        "ii->i": "labels of a term must differ",
        "ij->k": "must name labels of its operands",
        "i->i": "a label for",
    }
    for equation, message in cases.items():
        model = ModelBuilder()
        found = model.node("Einsum", model.input("x", (3, 3)), equation=equation)
        assert message in refused(model.finish(found))


@variants_together
@pytest.mark.parametrize("dtype", [np.int64, np.float32, np.bool_])
@pytest.mark.parametrize("upper", [0, 1])
def test_triangles(dtype: Any, upper: int) -> None:
    check("Trilu", [drawn((2, 5, 7), dtype)], upper=upper)
    check("Trilu", [drawn((5, 5), dtype), np.array(-2)], constants=1, upper=upper)


@variants_together
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_one_element_of_many(axis: int) -> None:
    indices = np.array([[0, 3, -1], [4, 2, -5]])
    check("OneHot", [indices, np.array(5), np.array([-1, 3], np.float32)], constants=2, axis=axis)


NORMS = ["ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp", "ReduceProd"]


@variants_together
@pytest.mark.parametrize("kind", NORMS)
def test_norms_of_floats(kind: str) -> None:
    """Of rows in which one number is not a one, so that every order of terms gives the same."""
    x = np.abs(drawn((3, 5, 19), np.float32)) + 1
    model = ModelBuilder()
    found = model.node(kind, model.input("x", x.shape), model.constant(np.array([-1])), keepdims=0)
    content = model.finish(found, dtype=np.float32, version=18)
    assert_floats_within(found_by(content, x)[0], expected(content, {"x": x})[0], "pair")


def test_sums_of_powers_of_infinite_numbers() -> None:
    model = ModelBuilder()
    axes = model.constant(np.array([1]))
    content = model.finish(
        model.node("ReduceLogSumExp", model.input("x", (4, 2)), axes, keepdims=0), dtype=np.float32, version=18
    )
    x = np.array([[-np.inf, -np.inf], [-np.inf, 3], [np.inf, 1], [200, 200]], np.float32)
    assert found_by(content, x)[0].tolist() == [-np.inf, 3, np.inf, np.float32(200 + np.log(2))]
