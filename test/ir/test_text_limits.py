"""Text that MLIR must not see, parsing, the JIT, and the stubs of the bindings."""

import ast
import contextlib
import ctypes
import gc
import importlib
import subprocess
import sys
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from bounds import HANG, deadline
from hypothesis import given
from hypothesis import strategies as st
from subprocesses import output_of

from qdialect import ParseError, parse, verify
from qdialect.ir._mlir import ir
from qdialect.ir.context import location_of, make_context
from qdialect.ir.untrusted_input import LIMIT, MAX_OPERATORS, MAX_WORD, MIN_EXPANSION, first_violation
from qdialect.runtime.compiler import MachineCode
from qdialect.support.diagnostics import CompileError

DEEP = f"nest at most {LIMIT} deep"
LONG = f"at most {MIN_EXPANSION} characters"
WORD = f"at most {MAX_WORD} characters"


def used(attribute: str) -> str:
    return f"func.func private @f() attributes {{a.b = {attribute}}}\n"


def chain(first: str, other: str, count: int, sigil: str = "#") -> str:
    """Aliases, each of which has the one before in it."""
    lines = [f"{sigil}a0 = {first}", *(f"{sigil}a{i} = {other.format(f'{sigil}a{i - 1}')}" for i in range(1, count))]
    return "\n".join([*lines, used(f"{sigil}a{count - 1}")])


MANY = "".join(f"func.func private @f{i}() attributes {{a.b = #a}}\n" for i in range(10_000))


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("({[<" * (LIMIT // 4), None),
        ("({[<" * (LIMIT // 4) + "(", LIMIT),
        ("()" * LIMIT * 2, None),
        ('"' + "(" * LIMIT * 2 + '"', None),
        ("//" + "(" * LIMIT * 2, None),
        ("// \r" + "(" * LIMIT * 2, LIMIT + 4),
        ('"\\"' + "(" * LIMIT * 2 + '"', None),
        ("-> " * LIMIT * 2, None),
        ("a <= b " * LIMIT * 2, None),
        ("-" * LIMIT, None),
        ("- " * (LIMIT + 1), 0),
        ("-//\n" * (LIMIT + 1), 0),
        ("//" + "-" * LIMIT * 2, None),
    ],
)
def test_depth_is_counted_outside_of_strings_and_comments(text: str, at: int | None) -> None:
    found = first_violation(text)
    assert (found.position if found else None) == at


@pytest.mark.parametrize(
    "text",
    [
        'module attributes {a.b = "x\\FF"} {}',
        'module attributes {a.b = "\\C3\\"\\A4"} {}',
        'module attributes {"a.\\80" = 1} {}',
        'module @"\\e2\\82" {}',
        'module {} loc("\\FF")',
        'module {} loc("net\\FE.mlir":1:2)',
    ],
)
def test_a_string_that_is_no_text_is_a_located_error(text: str) -> None:
    """The bindings end the process where they make a Python string of one."""
    with pytest.raises(ParseError) as caught:
        parse(text)
    first = caught.value.diagnostics[0]
    assert first.message.startswith("a string must be UTF-8 text, but got ")
    assert (first.line, first.column) == (1, text.index('"') + 1)


@pytest.mark.parametrize("text", ['"\\C3\\A4"', '"\\\\FF"', '"\\22\\n\\t\\00"', '"\u00e4\\5C"'])
def test_escapes_of_text_are_text(text: str) -> None:
    parse(f"module attributes {{a.b = {text}}} {{}}")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (chain("1", "[{}]", 20_000), DEEP),
        (chain("1", "// comment\n [{}]", 20_000), DEEP),
        (chain("i8", "tuple<{}>", 20_000, "!"), DEEP),
        (chain("i8", "!llvm.struct<({}, i8)>", 20_000, "!"), DEEP),
        (chain('loc("x")', 'loc("y"({}))', 20_000), DEEP),
        (chain('loc("x")', 'loc(fused["y", {}])', 20_000), DEEP),
        (chain("distinct[0]<1>", "distinct[1]<{}>", 20_000), DEEP),
        (chain("1", "[{0}, {0}]", 40), LONG),
        (chain("i8", "tuple<{0}, {0}>", 40, "!"), LONG),
        (chain('loc("x")', "loc(callsite({0} at {0}))", 40), LONG),
        ('#a0 = "' + "x" * 100_000 + '"\n' + used("[" + "#a0, " * 1000 + "#a0]"), LONG),
        (used("affine_map<(i) -> (i" + " mod 7" * (MAX_OPERATORS + 1) + ")>"), f"at most {MAX_OPERATORS} operators"),
        (used("affine_map<(i) -> (i" + "- i" * (MAX_OPERATORS + 1) + ")>"), f"at most {MAX_OPERATORS} operators"),
        (used("affine_map<(d1e) -> (d1e" + "-d1e" * (MAX_OPERATORS + 1) + ")>"), f"at most {MAX_OPERATORS} operators"),
        (used("1" * 20_000), WORD),
        (used("0x" + "f" * 20_000), WORD),
        (used("tensor<" + "1x" * 20_000 + "i8>"), WORD),
        (used("1 : i16777215"), "at most 1024 bits, but got i16777215"),
        (used("dense<1> : tensor<4xui16777215>"), "at most 1024 bits, but got 4xui16777215"),
    ],
)
def test_text_that_would_end_the_process_or_never_end_is_a_located_error(text: str, message: str) -> None:
    with deadline(), pytest.raises(ParseError, match=message) as caught:
        parse(text, file_name="x.mlir")
    assert caught.value.diagnostics[0].line > 0


@pytest.mark.parametrize(
    "text",
    [
        chain("1", "[{}]", LIMIT - 2),
        chain("i8", "tuple<{}>", LIMIT - 2, "!"),
        chain("1", "[{0}, {0}]", 10),
        # The last alias before a module does not hold the module.
        "#a = 1\nmodule {\n" + MANY + "}\n#loc = loc(unknown)\n",
        "#a = 1\n" + MANY + "#loc = loc(unknown)\n",
        '#a = "x"\n"builtin.module"() ({\n' + MANY + "}) : () -> ()\n#loc = loc(unknown)\n",
        used("dense<[" + "-1, " * 5000 + "-1]> : tensor<5001xi8>"),
        used("array<f64: " + "6.7E-4, " * 5000 + "1.0e-05>"),
        "func.func @f() {\n"
        + "".join(f"  %c{i} = arith.constant -{i} : i32\n" for i in range(1, 5000))
        + "  return\n}\n",
        used('"' + "x" * 20_000 + '"'),
        used("1 : i1024"),
        used('dense<"0x' + "00" * 20_000 + '"> : tensor<20000xi8>'),
    ],
)
def test_text_of_any_length_within_the_limits_is_parsed_and_printed(text: str) -> None:
    assert str(parse(text))


# Each is an endless row of something that a scanner might look at again and again.
ROWS = (
    *('"\\', '"', "- ", "-x", "/", "// -\r", " ", "1x", "?", "#"),
    *("#a=\n", "!t = ", '@"', "\\", "=-", ",-", "1e-", "i1234,", "mod "),
)


@pytest.mark.parametrize("row", ROWS)
def test_time_is_linear(row: str) -> None:
    # A scan of the rest of the text from each of its positions would take 500 billion steps.
    with deadline():
        first_violation("[" + row * (1_000_000 // len(row)))


def test_the_deepest_chains_are_printed_and_copied_in_a_thread() -> None:
    # A thread's stack may be smaller than that of the program.
    texts = [chain("1", "[{}]", LIMIT - 2), chain("i8", "tuple<{}>", LIMIT - 2, "!"), used("[" * 490 + "]" * 490)]
    output_of(
        "import sys, threading, qdialect\n"
        "from qdialect.ir.context import copy\n"
        f"texts = {texts!r}\n"
        "threading.stack_size(2 << 20)\n"
        "done = []\n"
        "def work():\n"
        "    for text in texts:\n"
        "        done.append(str(copy(qdialect.parse(text))))\n"
        "thread = threading.Thread(target=work)\n"
        "thread.start(); thread.join()\n"
        "assert len(done) == 3\n"
    )


# Parsing text and files: what is refused, and where the error is said to be.

GOOD = "func.func @f() {\n  return\n}\n"
RESHAPE = '"qnn.reshape"(%x) {shape = array<i64: 4>} : (tensor<4xi8>) -> tensor<4xi8>'


def test_many_functions_with_python_verifiers_do_not_hang() -> None:
    functions = "".join(f"func.func @f{i}(%x: tensor<4xi8>) {{\n%0 = {RESHAPE}\nreturn\n}}\n" for i in range(16))
    code = f"import qdialect; m = qdialect.parse({functions!r}); qdialect.verify(m); print(m)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=HANG, stdout=subprocess.DEVNULL)


def test_ops_of_a_file_have_its_name(tmp_path: Path) -> None:
    file = tmp_path / 'odd "name" é.mlir'
    file.write_text(GOOD)
    module = parse(file)
    assert location_of(module.body.operations[0].location) == (str(file), 1, 1)


@given(st.text(st.sampled_from('"qnn.relu"(%x){}:tensor<4xi8>->[]-1 \n'), max_size=60))
def test_any_text_is_a_module_or_an_error(text: str) -> None:
    with contextlib.suppress(ParseError):
        verify(parse(text))


# Machine code in this process: calling it, keeping it alive, and what is refused.

ADD = """
llvm.func @add(%from: !llvm.ptr, %what: i64) {
  %old = llvm.load %from : !llvm.ptr -> i64
  %new = llvm.add %old, %what : i64
  llvm.store %new, %from : i64, !llvm.ptr
  llvm.return
}
"""


def machine_code(text: str) -> MachineCode:
    with make_context():
        return MachineCode(ir.Module.parse(text))


def test_a_bound_call_has_values_that_can_be_replaced() -> None:
    first, second = ctypes.c_int64(5), ctypes.c_int64(100)
    bound = machine_code(ADD).bind("add", (ctypes.addressof(first), 1), keep=(first, second))
    bound.call()
    bound.call()
    bound.writer(1)(ctypes.addressof(second))
    bound.call()
    bound.writer(2)(ctypes.addressof(first), 30)
    bound.call()
    assert (first.value, second.value) == (37, 101)


class Witness:
    """Something whose end can be seen."""


def test_a_call_alone_keeps_machine_code_and_memory() -> None:
    total, witness = ctypes.c_int64(), Witness()
    code = machine_code(ADD)
    alive = [weakref.ref(code), weakref.ref(witness)]
    call = code.bind("add", (ctypes.addressof(total), 7), keep=(witness,)).call
    del code, witness
    gc.collect()
    assert all(one() is not None for one in alive)
    call()
    assert total.value == 7
    del call
    gc.collect()
    assert all(one() is None for one in alive)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_another_number_of_values(count: int) -> None:
    with pytest.raises(CompileError, match=f"function 'add' must be called with 2 values, but got {count}"):
        machine_code(ADD).bind("add", [0] * count)


def test_an_argument_that_is_wider_than_a_value() -> None:
    text = "llvm.func @wide(%x: vector<16xi32>) {\n  llvm.return\n}"
    with pytest.raises(CompileError, match=r"argument 0 of function 'wide' must be an integer of at most 64 bits or a"):
        machine_code(text).bind("wide", [0])


def test_a_module_of_another_dialect_is_refused_with_its_diagnostic(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(CompileError, match="cannot be turned into machine code") as caught:
        machine_code("func.func @f(%x: index) { return }")
    assert "func.func" in caught.value.render()
    assert capfd.readouterr().err == ""


# The stubs promise nothing that the pinned packages do not have.

STUBS = Path(__file__).resolve().parents[2] / "typings"
# The buffer protocol is one of C; a dialect gets its three bases when its class is made.
UNSEEN = (".__buffer__", ".Dialect.Operation", ".Dialect.Type", ".Dialect.Attribute")


def modules() -> list[str]:
    files = (path.relative_to(STUBS).with_suffix("") for path in STUBS.rglob("*.pyi"))
    return sorted(".".join(part for part in file.parts if part != "__init__") for file in files)


def missing(body: list[ast.stmt], holder: Any, where: str) -> Iterator[str]:
    for node in body:
        if not isinstance(node, ast.ClassDef | ast.FunctionDef) or f"{where}.{node.name}".endswith(UNSEEN):
            continue
        if not hasattr(holder, node.name):
            yield f"{where}.{node.name}"
        elif isinstance(node, ast.ClassDef):
            yield from missing(node.body, getattr(holder, node.name), f"{where}.{node.name}")


@pytest.mark.parametrize("module", modules())
def test_every_declared_name_exists(module: str) -> None:
    path = STUBS / Path(*module.split("."))
    stub = path.with_suffix(".pyi") if path.with_suffix(".pyi").exists() else path / "__init__.pyi"
    body = ast.parse(stub.read_text()).body
    declared = [node for node in body if not getattr(node, "name", "").startswith("_")]
    assert list(missing(declared, importlib.import_module(module), module)) == []
