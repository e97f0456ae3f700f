"""Text that MLIR must not see: how deep it nests, how long it becomes, and how long it takes to find out."""

import pytest
from deadline import deadline
from subprocesses import output_of

from qdialect import ParseError, parse
from qdialect.ir.untrusted_input import LIMIT, MAX_OPERATORS, MAX_WORD, MIN_EXPANSION, first_violation

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
    '"\\',
    '"',
    "- ",
    "-x",
    "/",
    "// -\r",
    " ",
    "1x",
    "?",
    "#",
    "#a=\n",
    "!t = ",
    '@"',
    "\\",
    "=-",
    ",-",
    "1e-",
    "i1234,",
    "mod ",
)


@pytest.mark.parametrize("row", ROWS)
def test_time_is_linear(row: str) -> None:
    # What looked at the rest of the text from each of its positions would take 500 billion steps.
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
