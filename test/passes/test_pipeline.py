"""Text pipelines, passes by name, and a pass manager that mixes our passes with upstream's."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qdialect import CompositePass, Pass, PassError, PassManager, PipelineError, parse
from qdialect.ir._mlir import ir
from qdialect.ir.suggestions import UPSTREAM_PASSES
from qdialect.passes import options
from qdialect.passes.canonicalize import CanonicalizePass
from qdialect.passes.observers import IRPrinter, Timer, observing
from qdialect.passes.pattern import PatternPass
from qdialect.passes.pipeline import is_known
from qdialect.passes.registry import all_passes, lookup

MODULE = """\
func.func @f(%x: tensor<2x4xi8>) -> (tensor<2x4xi8>, i32) {
  %same = "qnn.reshape"(%x) {shape = array<i64: 2, 4>} : (tensor<2x4xi8>) -> tensor<2x4xi8>
  %one = arith.constant 1 : i32
  %two = arith.addi %one, %one : i32
  return %same, %two : tensor<2x4xi8>, i32
}
"""


@pytest.mark.parametrize(
    "text",
    [
        "builtin.module()",
        "builtin.module(cse)",
        "builtin.module(qnn-canonicalize,cse,qnn-canonicalize)",
        "builtin.module(func.func(cse,canonicalize{max-iterations=1}),cse)",
        "builtin.module(func.func(scf.for(cse),cse,scf.for(cse)),any(cse))",
        "builtin.module(inline{op-pipelines={func.func(canonicalize,cse)}})",
        "builtin.module(fuse-qnn{leaky-relu=fixed})",
        "builtin.module(one-shot-bufferize{bufferize-function-boundaries unknown-type-conversion=identity-layout-map})",
        "builtin.module(print-ir{label='a b'})",
    ],
)
def test_the_print_of_a_pipeline_is_its_text(text: str) -> None:
    assert str(PassManager.parse(text)) == text


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ("", 1, 1, "expected the name of a pass, but got the end"),
        ("builtin.module(cse,)", 1, 20, "expected the name of a pass, but got ')'"),
        ("builtin.module(cse", 1, 19, "expected ',' or ')', but got the end"),
        ("builtin.module(cse))", 1, 20, "expected ',' or the end, but got ')'"),
        ("cse,\n  cse x", 2, 7, "expected ',' or the end, but got 'x'"),
        ("cse,no-such", 1, 5, "unknown pass 'no-such'"),
        ("cse,qnn-canonicalise", 1, 5, "unknown pass 'qnn-canonicalise', did you mean 'qnn-canonicalize'?"),
        (
            "func.func(qnn-canonicalize)",
            1,
            11,
            "'qnn-canonicalize' works on a module, so it cannot be nested in 'func.func'",
        ),
        ("func.func()", 1, 11, "expected the name of a pass, but got ')'"),
        ("canonicalize{speed=1}", 1, 1, "no such option speed"),
        ("qnn-canonicalize{speed=1}", 1, 1, "'qnn-canonicalize' has no option 'speed', its options are: none"),
        ("fuse-qnn{leaky-relu=fixed leaky-relu=lut}", 1, 1, "option 'leaky-relu' is given twice"),
        ("canonicalize{", 1, 13, "expected '}' at the end of the options"),
        ("print-ir{label='}", 1, 9, "expected '}' at the end of the options"),
        (
            "func.func(convert-func-to-llvm)",
            1,
            11,
            "Can't add pass 'ConvertFuncToLLVMPass' restricted to 'builtin.module'",
        ),
        ("func.func(" * 80 + "cse" + ")" * 80, 1, 641, "anchors must nest at most 64 deep"),
    ],
)
def test_a_bad_text_is_refused_with_its_column(text: str, line: int, column: int, message: str) -> None:
    with pytest.raises(PipelineError) as error:
        PassManager.parse(text)
    diagnostic = error.value.diagnostics[0]
    assert diagnostic.message.startswith(message)
    assert (diagnostic.line, diagnostic.column) == (line, column)
    assert f"column {column}: {message}" in str(error.value)
    assert f"<pass-pipeline>:{line}:{column}: error: {message}" in error.value.render()


@given(st.text(st.sampled_from("cse,(){}=' \n\"qf.unc-1"), max_size=30))
def test_any_text_is_a_pipeline_or_an_error(text: str) -> None:
    try:
        manager = PassManager.parse(text)
    except PipelineError:
        return
    assert str(PassManager.parse(str(manager))) == str(manager)


def test_our_passes_and_upstream_passes_run_in_order() -> None:
    module = parse(MODULE)
    PassManager.parse("builtin.module(qnn-canonicalize,func.func(canonicalize))").run(module)
    assert "qnn.reshape" not in str(module)
    assert "arith.addi" not in str(module)


@dataclass(frozen=True)
class Failing(Pass):
    """Raise what it is given."""

    name: ClassVar[str] = "failing"
    what: ClassVar[Exception]

    def run(self, module: ir.Module) -> None:
        raise self.what


@pytest.mark.parametrize(
    ("raised", "message"),
    [
        (ZeroDivisionError("by nothing"), "failing: ZeroDivisionError: by nothing"),
        (PassError("has no way out"), "failing: has no way out"),
        (PassError("failing: has no way out"), "failing: has no way out"),
    ],
)
def test_whatever_a_pass_raises_is_a_pass_error(raised: Exception, message: str) -> None:
    Failing.what = raised
    with pytest.raises(PassError) as error:
        PassManager(Failing()).run(parse(f"module {{\n{MODULE}}}"))
    assert str(error.value) == message
    assert error.value.__cause__ is raised
    first, *notes = error.value.render().splitlines()
    assert first == f"-:1:1: error: {message}"
    is_own = isinstance(raised, PassError)
    assert [Path(__file__).name in note and "note: raised here, in 'run'" in note for note in notes] == [True] * (
        not is_own
    )


@dataclass(frozen=True)
class Composed(CompositePass):
    """Runs two passes, the second of which fails."""

    name: ClassVar[str] = "composed"

    def passes(self) -> tuple[Pass, ...]:
        return CanonicalizePass(), Failing()


def test_the_failing_part_of_a_composite_pass_is_named() -> None:
    Failing.what = ValueError("x")
    with pytest.raises(PassError, match=r"^failing: ValueError: x$"):
        PassManager(Composed()).run(parse(MODULE))


def test_an_upstream_failure_names_the_pass_and_the_location() -> None:
    module = parse(
        "func.func @f(%m: memref<?xi8>) {\n  memref.dealloc %m : memref<?xi8>\n  return\n}", file_name="x.mlir"
    )
    transform = "transform-interpreter{entry-point=nowhere}"
    with pytest.raises(PassError, match=r"^transform-interpreter: ") as error:
        PassManager.parse(f"cse,{transform}").run(module)
    assert isinstance(error.value.__cause__, ir.MLIRError)
    assert error.value.diagnostics[0].line >= 1


@dataclass(frozen=True)
class Breaking(Pass):
    """Leave a reshape that changes the number of elements."""

    name: ClassVar[str] = "breaking"

    def run(self, module: ir.Module) -> None:
        reshape = module.body.operations[0].regions[0].blocks[0].operations[0]
        reshape.attributes["shape"] = ir.DenseI64ArrayAttr.get([7])


def test_an_invalid_module_is_the_fault_of_the_pass_before() -> None:
    with pytest.raises(PassError, match=r"^breaking: 'qnn.reshape' op") as error:
        PassManager(Breaking(), "cse").run(parse(MODULE))
    assert error.value.diagnostics[0].line == 2


@dataclass(frozen=True)
class Harmless(CompositePass):
    """Runs one pass."""

    name: ClassVar[str] = "harmless"

    def passes(self) -> tuple[Pass, ...]:
        return (CanonicalizePass(),)


def test_the_timer_counts_each_part_once(capsys: pytest.CaptureFixture[str]) -> None:
    timer = Timer()
    with observing(timer, IRPrinter(names_after=frozenset(["harmless"]))):
        PassManager(Harmless(), "cse").run(parse(MODULE))
    assert [name for name, _ in timer.seconds] == ["qnn-canonicalize", "cse"]
    assert all(seconds > 0 for _, seconds in timer.seconds)
    assert capsys.readouterr().err.startswith("// -----// IR Dump After harmless //----- //\nmodule {")


@pytest.mark.parametrize("name", UPSTREAM_PASSES)
def test_every_pass_that_is_suggested_is_there(name: str) -> None:
    assert is_known(name)


# Passes by name, and their options as text.


@dataclass(frozen=True)
class WithOptions(Pass):
    """Do nothing, with options.

    More words.
    """

    name: ClassVar[str] = "test-with-options"
    max_size: int = 4
    fast: bool = False
    factor: float = 1.5
    label: str = ""
    sizes: tuple[int, ...] = ()

    def run(self, module: ir.Module) -> None: ...


@given(
    st.builds(
        WithOptions,
        max_size=st.integers(),
        fast=st.booleans(),
        factor=st.floats(allow_nan=False),
        label=st.text(st.characters(exclude_characters="\"'"), max_size=8),
        sizes=st.lists(st.integers(), max_size=3).map(tuple),
    )
)
def test_every_pass_is_read_back_from_its_print(made: WithOptions) -> None:
    text = str(made).removeprefix("test-with-options{").removesuffix("}")
    assert WithOptions.from_options(options.split(text)) == made


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", {}),
        ("a", {"a": "true"}),
        ("a=1  b=x,y", {"a": "1", "b": "x,y"}),
        ("a={x y} b='p q' c=\"r s\" d", {"a": "x y", "b": "p q", "c": "r s", "d": "true"}),
        ("a=f(x, y){z w}", {"a": "f(x, y){z w}"}),
        ("a='{'", {"a": "{"}),
        ("a=", {"a": ""}),
    ],
)
def test_options_are_split_at_blanks_outside_of_brackets(text: str, found: dict[str, str]) -> None:
    assert options.split(text) == found


@pytest.mark.parametrize(
    ("given_", "message"),
    [
        ({"max-size": "big"}, "option 'max-size' of 'test-with-options' must be an integer, but got 'big'"),
        ({"fast": "2"}, "option 'fast' of 'test-with-options' must be true or false, but got '2'"),
        ({"factor": "x"}, "option 'factor' of 'test-with-options' must be a number, but got 'x'"),
        ({"sizes": "1,x"}, "option 'sizes' of 'test-with-options' must be an integer, but got 'x'"),
        (
            {"size": "1"},
            "'test-with-options' has no option 'size', its options are: max-size, fast, factor, label, sizes",
        ),
    ],
)
def test_a_value_of_another_kind_is_refused(given_: dict[str, str], message: str) -> None:
    with pytest.raises(PipelineError) as error:
        WithOptions.from_options(given_)
    assert str(error.value) == message


def test_every_pass_of_ours_has_a_summary_and_is_found_by_its_name() -> None:
    found = all_passes()
    assert "fuse-qnn" in found
    for name, pass_class in found.items():
        assert lookup(name) is pass_class
        assert pass_class.summary(), name
        assert list(found) == sorted(found)


@pytest.mark.parametrize("pass_class", [one for one in all_passes().values() if issubclass(one, PatternPass)])
def test_patterns_that_note_what_they_have_seen_are_new_in_each_run(pass_class: type[PatternPass]) -> None:
    """What a pattern has noted of one module must not be looked up in another."""
    one = pass_class()
    first, second = one.patterns(), one.patterns()
    assert not {id(pattern) for pattern in first} & {id(pattern) for pattern in second}
