"""The headers of compiled networks: they compile without a warning, whatever a model calls its tensors."""

import re
from pathlib import Path

import numpy as np
import pytest
from c_programs import STRICT, compiled, ran, tool
from graphs import random_inputs

import qdialect
from qdialect.aot.external_header import quoted
from qdialect.aot.network import checked_name, name_of_file
from qdialect.ir.context import parse
from qdialect.support.diagnostics import InputError

NAMES = {
    "comment": "*/ int x; /*",
    "line": "a\nb\\",
    "quote": 'say "no"',
    "trigraph": "??/ ??' ??=",
    "terminal": "\x1b[2J\u202e",
    "unicode": "Bild-größe 画像",
    "percent": "%s%n",
    "macro": "__FILE__ ## #define",
}


def network(name: str) -> str:
    escaped = "".join(c if c.isalnum() and c.isascii() else "".join(f"\\{b:02X}" for b in c.encode()) for c in name)
    return f"""
func.func @main(%x: tensor<2x3xi8> {{qnn.name = "{escaped}", qnn.scale = 0.5 : f64, qnn.zero_point = -3 : i64}},
                %y: tensor<2xi16>, %z: tensor<i1>) -> (tensor<2x3xi8>, tensor<2xi16>, tensor<i1>) {{
  %0 = "qnn.clip"(%x) {{min = -5 : i64, max = 9 : i64}} : (tensor<2x3xi8>) -> tensor<2x3xi8>
  return %0, %y, %z : tensor<2x3xi8>, tensor<2xi16>, tensor<i1>
}}
"""


@pytest.mark.parametrize("kind", NAMES)
def test_any_name_is_harmless(kind: str, tmp_path: Path) -> None:
    compiled(tmp_path, network(NAMES[kind]))
    header = (tmp_path / "model.h").read_text()
    assert header.isascii()
    assert [line for line in header.splitlines() if not line.isprintable()] == []
    (tmp_path / "names.c").write_text(
        '#include <stdio.h>\n#include "model.h"\n'
        "int main(void) {\n"
        "  const qdialect_network *network = model_network();\n"
        "  fputs(qdialect_name(network, qdialect_input(network, 0)), stdout);\n"
        "  return 0;\n}\n"
    )
    here = "-Wl,-rpath,."
    for standard in ("-std=c89", "-std=c99", "-std=c17"):
        ran(tool("cc"), standard, *STRICT, "names.c", "./model.so", here, "-o", "names", folder=tmp_path)
    assert ran("./names", folder=tmp_path) == NAMES[kind]
    assert qdialect.load(tmp_path / "model.so").inputs[0].name == NAMES[kind]
    (tmp_path / "empty.cpp").write_text('#include "model.hpp"\n')
    ran(tool("c++"), "-std=c++20", *STRICT, "-fsyntax-only", "empty.cpp", folder=tmp_path)


def test_all_kinds_of_arrays_pass_through(tmp_path: Path) -> None:
    text = network("x")
    library = compiled(tmp_path, text)
    module = parse(text)
    inputs = random_inputs(module)
    for one, other in zip(qdialect.load(library)(*inputs), qdialect.compile(module)(*inputs), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


def test_the_header_says_what_the_network_takes(tmp_path: Path) -> None:
    compiled(tmp_path, network("image"), "--targets", "x86-64,znver4", "--name", "clip")
    header = (tmp_path / "model.h").read_text()
    assert header.startswith(
        f"/* Network clip, written by qdialect-compile {qdialect.__version__}.\n"
        '     input 0: "image", int8[2, 3], scale 0.5, zero point -3\n'
        '     input 1: "arg1", int16[2]\n'
        '     input 2: "arg2", bool[]\n'
        '     output 0: "res0", int8[2, 3]\n'
    )
    versions = re.findall(r"version \d: .*", header)
    assert versions[0].startswith("version 0: avx512vbmi, which needs a CPU with avx, avx2, avx512bw, ")
    assert versions[1:] == ["version 1: x86-64, which needs any x86-64 CPU"]
    assert "#define CLIP_INPUT_1_SIZE 4u" in header


def test_text_of_c_has_nothing_that_ends_it() -> None:
    assert quoted("a/b:0") == '"a/b:0"'
    assert quoted('*/"\\\n?é') == '"\\052/\\042\\134\\012\\077\\303\\251"'


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("model.so", "model"),
        ("mobilenet-v1_0.25.so", "mobilenet_v1_0"),
        ("8bit.so", "network_8bit"),
        ("größe.so", "gr_e"),
        (".so", "network"),
        ("_x.so", "x"),
        ("a" * 300 + ".so", "a" * 200),
        ("qdialect.so", "network_qdialect"),
    ],
)
def test_a_file_gives_its_network_a_name(file: str, name: str) -> None:
    assert name_of_file(Path(file)) == checked_name(name)


@pytest.mark.parametrize("name", ["", "1x", "_x", "a-b", "a.b", "größe", "a b", "x" * 201, "a\n"])
def test_what_c_does_not_allow_is_no_name(name: str) -> None:
    with pytest.raises(InputError, match="name of a network must be a C identifier of at most 200 characters that"):
        checked_name(name)


def test_a_name_that_the_header_uses_is_refused() -> None:
    with pytest.raises(InputError, match="name of a network must not be 'qdialect', which the types of its header"):
        checked_name("qdialect")
    assert checked_name("qdialect_") == "qdialect_"
