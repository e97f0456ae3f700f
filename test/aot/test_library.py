"""Files of compiled networks have no writable data, few relocations, and no code that loading runs."""

import re
import subprocess
from pathlib import Path

import pytest
from c_programs import STRICT, compiled, ran, tool
from drawn_networks import CONVOLUTION, DIVISIBLE

import qdialect
from qdialect.aot.record import checked_name, name_of_file
from qdialect.cli import compile as command
from qdialect.ir.context import parse
from qdialect.runtime.compiler import CompiledExecutable
from qdialect.runtime.library import PERF_MAP
from qdialect.support.diagnostics import InputError

PUBLIC = ("network", "run", "strerror", "version", "workspace_size")
FLOATS = """
func.func @main(%x: tensor<64xf32>) -> tensor<64xf32> {
  %0 = math.exp %x : tensor<64xf32>
  %1 = math.floor %0 : tensor<64xf32>
  return %1 : tensor<64xf32>
}
"""
# Sections that the loader writes once and then protects, or that hold nothing.
LOADER = {".dynamic", ".got", ".got.plt"}
SYSTEM = {"libc.so.6", "libm.so.6"}
# Instructions of AVX and of what came after it.
LATER = re.compile(
    r"\t(?:v[a-z]\w+|andn|bzhi|lzcnt|movbe|pdep|pext|popcnt|pshufb|round[ps][sd]|rorx|sarx|shlx|shrx|mulx)\s|%[yz]mm|%k[0-7]"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Libraries of several kinds, with more than one version where there is a choice."""
    found = tmp_path_factory.mktemp("libraries")
    compiled(found, CONVOLUTION, "--targets", "znver4,cascadelake,x86-64", "--name", "model", output="many.so")
    compiled(found, CONVOLUTION, "--mcpu", "x86-64", "--name", "model", output="one.so")
    compiled(found, DIVISIBLE, "--threads", "2", "--name", "model", output="threads.so")
    compiled(found, FLOATS, "--mcpu", "x86-64", "--name", "model", output="floats.so")
    return found


LIBRARIES = pytest.mark.parametrize("name", ["many.so", "one.so", "threads.so", "floats.so"])


@LIBRARIES
def test_nothing_is_writable(folder: Path, name: str) -> None:
    lines = ran(tool("readelf"), "--sections", "--wide", name, folder=folder).splitlines()
    rows = [re.split(r"\s+", line.split("]", 1)[1].strip()) for line in lines if re.match(r"\s+\[ *[1-9]", line)]
    writable = {row[0] for row in rows if "W" in row[6]}
    assert {row[0] for row in rows} >= {".text", ".rodata"}
    assert writable <= LOADER
    program = ran(tool("readelf"), "--program-headers", "--wide", name, folder=folder)
    protected = re.search(r"^\s+\d+\s+(\.dynamic .*)$", program.split("GNU_RELRO")[-1], re.MULTILINE)
    assert protected is not None
    assert set(protected[1].split()) == writable
    assert re.search(r"GNU_STACK .* RW ", program)


@LIBRARIES
def test_loading_runs_nothing_and_needs_little(folder: Path, name: str) -> None:
    dynamic = ran(tool("readelf"), "--dynamic", "--wide", name, folder=folder)
    tags = set(re.findall(r"\((\w+)\)", dynamic))
    assert not tags & {"INIT", "FINI", "INIT_ARRAY", "FINI_ARRAY", "TEXTREL"}
    needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic))
    assert needed - SYSTEM == ({"libgomp.so.1"} if name == "threads.so" else set())


@LIBRARIES
def test_there_is_nothing_to_relocate_but_functions_of_others(folder: Path, name: str) -> None:
    relocations = ran(tool("readelf"), "--relocs", "--wide", name, folder=folder)
    kinds = set(re.findall(r"R_X86_64_\w+", relocations))
    assert kinds <= {"R_X86_64_GLOB_DAT", "R_X86_64_JUMP_SLOT"}


@LIBRARIES
def test_only_the_interface_is_visible(folder: Path, name: str) -> None:
    lines = ran(tool("nm"), "--dynamic", "--defined-only", name, folder=folder).splitlines()
    public = {f"model_{one}" for one in (*PUBLIC, *(["run_threads"] if name == "threads.so" else []))}
    assert {line.split()[2] for line in lines} == {*public, "qdialect_network_of_file"}


def test_an_object_file_is_as_a_compiler_makes_it(tmp_path: Path) -> None:
    compiled(tmp_path, CONVOLUTION, "--emit", "obj", "--targets", "host,x86-64", output="model.o")
    symbols = ran(tool("nm"), "--extern-only", "model.o", folder=tmp_path).splitlines()
    defined = {line.split()[2] for line in symbols if len(line.split()) == 3}
    hidden = {name for name in defined if name.startswith("_mlir_")}
    assert defined - hidden == {f"model_{one}" for one in PUBLIC}
    table = ran(tool("readelf"), "--symbols", "--wide", "model.o", folder=tmp_path)
    assert all(re.search(rf"HIDDEN +\d+ {name}$", table, re.MULTILINE) for name in hidden)
    undefined = {line.split()[1] for line in symbols if len(line.split()) == 2}
    assert undefined <= {"_GLOBAL_OFFSET_TABLE_", "memset", "memcpy", "memmove"}
    assert ".l" not in ran(tool("readelf"), "--sections", "--wide", "model.o", folder=tmp_path)


@pytest.mark.parametrize("name", ["many.so", "one.so", "floats.so"])
def test_code_for_every_cpu_uses_what_every_cpu_has(folder: Path, name: str) -> None:
    text = ran(tool("objdump"), "--disassemble", "--no-show-raw-insn", name, folder=folder)
    functions = re.split(r"^[0-9a-f]+ <(.*)>:$", text, flags=re.MULTILINE)
    bodies = dict(zip(functions[1::2], functions[2::2], strict=True))
    common = {function: body for function, body in bodies.items() if not re.match(r"model\.avx|_mlir_", function)}
    assert {"model_version", "model_strerror"} <= set(common)
    for function, body in common.items():
        assert not LATER.search(body), f"{function}\n{body}"
    assert bool([body for function, body in bodies.items() if "model.avx512vnni" in function and "%zmm" in body]) == (
        name == "many.so"
    )


def test_line_tables_name_the_text_next_to_the_library(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled(folder, CONVOLUTION, "-g", "--targets", "znver4,cascadelake,x86-64", "--name", "model", output="lines.so")
    compiled(folder, DIVISIBLE, "-g", "--threads", "2", "--emit", "obj", output="lines.o")
    plain, with_lines = (
        ran(tool("objdump"), "--disassemble", *options, name, folder=folder).splitlines()[3:]
        for name, options in (("many.so", []), ("lines.so", ["--line-numbers"]))
    )
    place = re.compile(r"(/.*\.mlir):(\d+)(?: \(discriminator \d+\))?$|\S+\(\):$")
    assert [line for line in with_lines if not place.match(line)] == plain
    shown: list[str] = []
    listed = ""
    for line in with_lines:
        if (found := place.match(line)) and found[1]:
            listed = Path(found[1]).read_text().splitlines()[int(found[2]) - 1]
        elif "\tvpdpbusd" in line:
            shown.append(listed)
    assert shown
    assert all("vpdpbusd" in listed for listed in shown)
    assert "lines.x86_64.mlir" in ran(tool("objdump"), "--dwarf=decodedline", "lines.so", folder=folder)
    monkeypatch.setenv(PERF_MAP, "1")
    assert qdialect.load(folder / "lines.so").inputs[0].name == "image"
    assert f"{folder / 'lines.so'}\n" in Path("/proc/self/maps").read_text()
    for options, message in (
        (["--emit", "llvm"], "--debug-info must be given with --emit so or obj, but got --emit llvm"),
        (["--batch", "dynamic"], "--debug-info must be given with a batch of one size, but got --batch dynamic"),
        (["--clock", "--tune"], "--clock must be given without --tune"),
    ):
        assert command.main([str(folder / "model.mlir"), "-o", str(folder / "refused"), "-g", *options]) == 1
        assert message in capsys.readouterr().err


def test_a_loaded_network_tells_what_a_compiled_one_does(tmp_path: Path) -> None:
    text = CONVOLUTION.replace(
        'qnn.name = "image"', 'qnn.name = "image", qnn.scale = 0.1 : f64, qnn.zero_point = -3 : i64'
    )
    module = parse(text)
    compiled_ = qdialect.compile(module)
    assert isinstance(compiled_, CompiledExecutable)
    compiled_.save(tmp_path / "saved.so")
    loaded = qdialect.load(tmp_path / "saved.so")
    for name in ("inputs", "outputs", "kernels", "calls", "threads", "constants_bytes", "working_memory", "regions"):
        assert getattr(loaded, name) == getattr(compiled_, name), name
    assert loaded.inputs[0].scale == 0.1


def test_the_same_network_makes_the_same_file(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    first, second = (compiled(tmp_path / name, CONVOLUTION).read_bytes() for name in ("a", "b"))
    assert first == second


# The headers of compiled networks: they compile without a warning, whatever a model calls its tensors.

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
    command = [tool("c++"), "-std=c++17", "-fsyntax-only", "empty.cpp"]
    older = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "C++20 is needed" in older.stderr


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
    assert versions[0].startswith("version 0: avx512bf16, which needs a CPU with avx, avx2, avx512bf16, avx512bw, ")
    assert versions[1:] == ["version 1: x86-64, which needs any x86-64 CPU"]
    assert "#define CLIP_INPUT_1_SIZE 4u" in header


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


def test_a_name_that_the_header_uses_is_refused() -> None:
    with pytest.raises(InputError, match="name of a network must not be 'qdialect', which the types of its header"):
        checked_name("qdialect")
    assert checked_name("qdialect_") == "qdialect_"
