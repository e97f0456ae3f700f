"""Options of every entry point: a name that is unknown or unused is an error with the names that there are."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx_graphs import ModelBuilder

import qdialect
from qdialect import targets
from qdialect.aot.artifact import artifact_of
from qdialect.cli import compile as compile_command
from qdialect.cli import import_model, opt, run
from qdialect.driver import torch_backend
from qdialect.driver.report import report
from qdialect.frontends.model_files import read_model
from qdialect.frontends.onnx import import_onnx
from qdialect.frontends.torch import import_torch
from qdialect.ir._mlir import ir
from qdialect.ir.context import make_context, parse
from qdialect.lowering.pipeline.phases import Phase, lower
from qdialect.lowering.x86_to_llvm.to_llvm import optimization_level
from qdialect.support.diagnostics import CompileError, ImportModelError, InputError
from qdialect.support.options import UNKEYED, CompileOptions, ImportOptions
from qdialect.targets import GENERIC

TEXT = "func.func @main(%x: tensor<2x3xi8>) -> tensor<2x3xi8> {\nreturn %x : tensor<2x3xi8>\n}"
WRONG: list[tuple[dict[str, Any], type[Exception], str]] = [
    *(
        ({"fallback": value}, InputError, f"'fallback' must be one of 'framework', 'none', but got {value!r}")
        for value in ("framwork", "None", "off", "", False, 0, 3.5)
    ),
    *(({"cache": value}, InputError, f"'cache' must be one of True, False, but got {value!r}") for value in ("off", 0)),
    *(({"tune": value}, InputError, f"'tune' must be one of True, False, but got {value!r}") for value in ("yes", 1)),
    ({"trust": "yes"}, InputError, "'trust' must be one of True, False, but got 'yes'"),
    ({"batch": 0}, ImportModelError, "batch must be at least 1, but got 0"),
    ({"batch": "all"}, InputError, "batch must be an integer or 'dynamic', but got 'all'"),
    ({"batch": 2.0}, InputError, "batch must be an integer or 'dynamic', but got 2.0"),
    *(
        ({"dims": {"N": value}}, InputError, r"dims\['N'\] must be an integer or a range \(minimum, maximum\)")
        for value in ("3", None, (3, 1), (-1, 4), (1,), (1, 2.5))
    ),
    ({"dims": {1: 3}}, InputError, "dims must have names of extents, or INPUT:AXIS, but got 1"),
    ({"dims": "N=3"}, InputError, "dims must be a mapping from names of extents, but got 'N=3'"),
    ({"profile": 3}, InputError, "'profile' must be a text, but got 3"),
    ({"signature": None}, InputError, "'signature' must be a text, but got None"),
    ({"branches": {"c": 1}}, InputError, "branches must have True or False for names, but got 1 for 'c'"),
    ({"target": 3}, InputError, "'target' must be a text, but got 3"),
    ({"progress": "bar"}, InputError, "progress must be a function of a text, but got 'bar'"),
    ({"externals": 3}, InputError, "externals must be a mapping from names of targets, but got 3"),
    ({"treads": 2}, InputError, "options of qdialect.compile must be .*, but got treads, did you mean 'threads'"),
    ({"threads": 0}, CompileError, "threads must be an integer from 1 to 256, but got 0"),
]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    """A file with a fixed batch, one with an open batch, and one of MLIR."""
    folder = tmp_path_factory.mktemp("models")
    for name, batch in (("fixed", 2), ("open", "N")):
        b = ModelBuilder()
        value = b.node("Relu", b.input("x", (batch, 3)))
        (folder / f"{name}.onnx").write_bytes(b.finish(value, dtype=np.float32))
    (folder / "module.mlir").write_text(TEXT)
    return {path.stem: path for path in folder.iterdir()}


@pytest.mark.parametrize(("options", "error", "message"), WRONG)
def test_wrong_options(files: Mapping[str, Path], options: dict[str, Any], error: type, message: str) -> None:
    for model in (files["open"], parse(TEXT)):
        with pytest.raises(error, match=message):
            qdialect.compile(model, **options)
    if options.keys() <= {"fallback", "threads"}:
        with pytest.raises(error, match=message):
            CompileOptions.of(options, torch_backend.OPTIONS, "torch.compile")
    imported = {"batch", "dims", "profile", "signature", "branches", "trust"}
    if options.keys() <= imported:
        with pytest.raises((InputError, ImportModelError), match=message.partition(" or ")[0]):
            read_model(files["open"], ImportOptions(**options))
    if options.keys() == {"fallback"}:
        with pytest.raises(error, match=message):
            report(files["open"], GENERIC, None, **options)


def test_wrong_arguments_of_calls(files: Mapping[str, Path]) -> None:
    load: Any = qdialect.load
    e: Any = qdialect.compile(files["fixed"])
    array = np.zeros((2, 3), np.float32)
    calls: list[tuple[Callable[[], Any], str]] = [
        (lambda: load(3), "path must be a text or a pathlib.Path, but got int"),
        (lambda: load(b"x.so"), "path must be a text or a pathlib.Path, but got bytes"),
        (lambda: e.save(None), "path must be a text or a pathlib.Path, but got NoneType"),
        (lambda: e(array, wrong=array), "network must have one input 'wrong', but has 0; its inputs are x"),
        (lambda: e({0: array}), "network must have one input '0', but has 0; its inputs are x"),
        (lambda: e.run([array], 3), "inputs and outputs must be sequences of arrays: object of type 'int' has no len"),
        (lambda: e.run(3, [array]), "inputs and outputs must be sequences of arrays: object of type 'int' has no len"),
        (lambda: e.run([array], [None]), r"output '.*' must be an array float32\[2, 3\], but got NoneType"),
    ]
    for call, message in calls:
        with pytest.raises(InputError, match=message):
            call()


def test_options_are_one_object(files: Mapping[str, Path]) -> None:
    options = qdialect.CompileOptions(batch=3, target="generic")
    executable = qdialect.compile(files["open"], options)
    assert (executable.target, executable.inputs[0].shape) == ("generic", (3, 3))
    with pytest.raises(InputError, match="options must be given in one object or by name, but got both"):
        qdialect.compile(files["open"], options, threads=2)
    wrong: Any = "generic"
    with pytest.raises(InputError, match="options must be an object of CompileOptions, but got 'generic'"):
        qdialect.compile(files["open"], wrong)


def test_the_key_of_the_cache_has_every_option_that_changes_code() -> None:
    others: dict[str, Any] = {"target": "generic", "threads": 2, "batch": 3, "dims": {"N": 3}, "profile": "tflite"}
    others |= {"signature": "s", "branches": {"c": True}, "trust": True, "fallback": "none", "tune": True}
    others |= {"workspaces": 2, "cache": False, "externals": {"npu": "lib.so"}, "jobs": 2, "progress": print}
    assert others.keys() == vars(CompileOptions()).keys()
    own = CompileOptions().text()
    assert {name for name, value in others.items() if CompileOptions(**{name: value}).text() == own} == set(UNKEYED)


def test_import_functions(files: Mapping[str, Path]) -> None:
    wrong: dict[str, Any] = {"batch": "2", "dims": {"N": 2.5}, "trust": "no"}
    with pytest.raises(InputError, match="batch must be an integer, but got '2'"):
        import_onnx(files["open"], batch=wrong["batch"])
    with pytest.raises(InputError, match=r"dims\['N'\] must be an integer, but got 2.5"):
        import_onnx(files["open"], dims=wrong["dims"])
    with pytest.raises(ImportModelError, match="batch must be 1 or 2 where inputs leave no first extent open"):
        import_onnx(files["fixed"], batch=3)
    # It is the batch of this model.
    import_onnx(files["fixed"], batch=2)
    with pytest.raises(InputError, match="'trust' must be one of True, False, but got 'no'"):
        import_torch(b"", trust=wrong["trust"])


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("fixed", {"batch": 3}, "batch must be 1 or 2 where inputs leave no first extent open, but got 3"),
        (
            "open",
            {"batch": 3, "dims": {"N": 2}},
            "batch must be 1 or 2 where inputs leave no first extent open, but got 3",
        ),
        ("open", {"dims": {"M": 2}}, "dims must name open extents of inputs, but got M"),
        ("open", {"signature": "main"}, "'signature' must be given with a .tflite file, but got 'main'"),
        ("open", {"branches": {"c": True}}, "branches must name conditions of If nodes, but got c"),
        ("open", {"profile": "x"}, "profile of a .onnx file must be ort or ort-accuracy-0 or .*, but got 'x'"),
        ("module", {"batch": 3}, "batch must be 1 for a .mlir file, which leaves no extent open, but got 3"),
        ("module", {"dims": {"N": 3}}, "a .mlir file leaves no extent open for dims, but got N"),
        ("module", {"profile": "ort"}, "profile of a .mlir file must be tosa, but got 'ort'"),
    ],
)
def test_options_that_nothing_would_use(
    files: Mapping[str, Path], name: str, options: dict[str, Any], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises((InputError, ImportModelError), match=message):
        qdialect.compile(files[name], **options)
    with pytest.raises((InputError, ImportModelError), match=message):
        read_model(files[name], ImportOptions(**options))
    flags = [f"--{key}={value}" for key, value in options.items() if key not in ("dims", "branches")]
    flags += [f"--branch={key}={int(value)}" for key, value in options.get("branches", {}).items()]
    flags += [f"--dim={key}={value}" for key, value in options.get("dims", {}).items()]
    assert import_model.main([str(files[name]), *flags]) == 1
    assert message.partition(" .*")[0].partition("'")[0] in capsys.readouterr().err


@pytest.mark.parametrize(
    "options", [{"batch": 2}, {"dims": {"N": 1}}, {"profile": "ort"}, {"signature": "main"}], ids=str
)
def test_a_module_has_no_options_of_a_file(options: dict[str, Any]) -> None:
    (name,) = options
    with pytest.raises(InputError, match=f"'{name}' must be given with a model file, but got .* with a module"):
        qdialect.compile(parse(TEXT), **options)


def test_a_batch_that_is_used(files: Mapping[str, Path]) -> None:
    executable = qdialect.compile(files["open"], batch=2, cache=False)
    # Others are compiled when they come, whatever the first was.
    for rows in (2, 5):
        assert np.shape(executable(-np.ones((rows, 3), np.float32))) == (rows, 3)
    fixed = qdialect.compile(files["fixed"], batch="dynamic", cache=False)
    assert np.shape(fixed(np.ones((7, 3), np.float32))) == (7, 3)


@pytest.mark.parametrize(
    ("command", "flags", "message"),
    [
        (run.main, ["--batch=0"], "batch must be at least 1, but got 0"),
        (
            compile_command.main,
            ["-o=x.so", "--batch=3"],
            "batch must be 1 or 2 where inputs leave no first extent open",
        ),
        (compile_command.main, ["-o=x.so", "--signature=a"], "'signature' must be given with a .tflite file"),
        (import_model.main, ["--report", "--fuse"], "--fuse must be given without --report"),
        (opt.main, ["--target=znver9"], "--target must be given with --compile-to or --compare-phases"),
        (opt.main, ["--mattr=+avx2", "--fuse-qnn"], "--mattr must be given with --compile-to or --compare-phases"),
        (opt.main, ["--threads=2", "--tune"], "--threads must be given with --compile-to or --compare-phases"),
        (opt.main, ["--jobs=2"], "--jobs must be given with passes, --compile-to, --compare-phases or --tune"),
    ],
)
def test_commands(
    files: Mapping[str, Path],
    command: Callable[[list[str]], int],
    flags: list[str],
    message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert command([str(files["fixed"]), *flags]) == 1
    assert message in capsys.readouterr().err


# How thoroughly LLVM optimizes a module depends on the target that it was lowered for.

COPY = "func.func @main(%x: tensor<1x8xui8>) -> tensor<1x8xui8> {\n  return %x : tensor<1x8xui8>\n}"


@pytest.mark.parametrize(
    ("target", "level"), [("avx512vnni", 0), ("avx2", 0), ("x86-64", 0), ("generic", 3), ("avx2,portable", 3)]
)
def test_level_of_a_target(target: str, level: int) -> None:
    with make_context():
        module = ir.Module.parse(f'module attributes {{qnn.target = "{target}"}} {{}}')
    assert optimization_level(module) == level


def test_a_module_from_elsewhere_gets_all_optimizations() -> None:
    with make_context():
        assert optimization_level(ir.Module.parse("module {}")) == 3


@pytest.mark.parametrize(("names", "level"), [(["avx512vnni", "avx2"], 0), (["avx2", "generic"], 3)])
def test_a_library_is_compiled_as_its_plainest_version(names: list[str], level: int) -> None:
    module = parse(COPY)
    chosen = [targets.resolve(name) for name in names]
    versions = [lower(module, target, Phase.LLVM) for target in chosen]
    assert optimization_level(artifact_of("copy", chosen, versions).module) == level
