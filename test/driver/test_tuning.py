"""Kernels measured in variants: the choice follows the clock, ties keep the model's, and every variant has the bits."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from cached import CLIP, entries, replaced
from cached import kept as kept
from numpy.typing import NDArray

import qdialect
from qdialect.cache.store import Store
from qdialect.cli import compile as compile_command
from qdialect.driver import tuning
from qdialect.driver.tuning import measure, tuned
from qdialect.ir._mlir import ir
from qdialect.lowering.cost import variants
from qdialect.lowering.ir import lowered
from qdialect.lowering.ir.lowered import Phase
from qdialect.lowering.pipeline.phases import lower
from qdialect.runtime.comparison import random_inputs
from qdialect.support.diagnostics import CompileError, InputError
from qdialect.support.interface import Tunable
from qdialect.targets import host, resolve

pytest_plugins = ["cached"]

Seconds = Callable[[Tunable], float]
ROUNDS = 5


def conv(name: str, data: str, shape: str, weight: str, pads: int, groups: int, out: str) -> str:
    return f"""
  %w{name} = "qnn.constant"() {{value = dense<3> : tensor<{weight}xi8>}} : () -> tensor<{weight}xi8>
  %s{name} = "qnn.conv2d"({data}, %w{name}) {{
    input_scale = 0.5 : f64, input_zero_point = 7 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, strides = array<i64: 1, 1>,
    padding = array<i64: {pads}, {pads}, {pads}, {pads}>, dilation = array<i64: 1, 1>, groups = {groups} : i64
  }} : (tensor<{shape}xui8>, tensor<{weight}xi8>) -> tensor<{out}xi32>
  %{name} = "qnn.requantize"(%s{name}) {{
    input_scale = 0.5 : f64, weight_scales = array<f64: 0.25>, input_zero_points = array<i64: 0>,
    output_scale = 32.0 : f64, output_zero_point = 3 : i64, axis = 3 : i64, rounding = "fixed64_up",
    multiplier = "f64"
  }} : (tensor<{out}xi32>) -> tensor<{out}xui8>"""


NETWORK = f"""
func.func @main(%x: tensor<1x7x8x16xui8>) -> tensor<1x7x8x64xui8> {{
  {conv("a", "%x", "1x7x8x16", "64x1x1x16", 0, 1, "1x7x8x64")}
  {conv("b", "%a", "1x7x8x64", "64x3x3x1", 1, 64, "1x7x8x64")}
  {conv("c", "%b", "1x7x8x64", "64x1x1x64", 0, 1, "1x7x8x64")}
  return %c : tensor<1x7x8x64xui8>
}}
"""
SMALL = f"""
func.func @main(%x: tensor<1x4x4x16xui8>) -> tensor<1x4x4x16xui8> {{
  {conv("a", "%x", "1x4x4x16", "16x1x1x16", 0, 1, "1x4x4x16")}
  return %a : tensor<1x4x4x16xui8>
}}
"""
TARGET = "avx512vbmi"
needs_vbmi = pytest.mark.skipif(not host().has_vbmi, reason="names variants of a CPU with VBMI")


def clock_of(
    seconds: Seconds, seen: list[int] | None = None
) -> Callable[[Sequence[ir.Module]], list[NDArray[np.float64]]]:
    """A clock that shows `seconds` for each call; it notes in `seen` how many networks it was given."""

    def clock(modules: Sequence[ir.Module]) -> list[NDArray[np.float64]]:
        if seen is not None:
            seen.append(len(modules))
        calls = [lowered.read(module).calls for module in modules]
        return [np.array([[seconds(c.tunable) if c.tunable else 1.0 for c in own]] * ROUNDS) for own in calls]

    return clock


def refuse(_: Tunable) -> float:
    raise AssertionError("a kernel was measured that was measured before")


def fast(*names: str) -> Seconds:
    """A clock's seconds by which the variants `names` are twice as fast as others."""
    return lambda tunable: 0.5 if tunable.variant in names else 1.0


@needs_vbmi
def test_the_choice_follows_the_measurement() -> None:
    module = qdialect.parse(NETWORK)
    found, report = tuned(module, TARGET, clock=clock_of(fast("taps", "14 rows x 2 vectors")))
    assert [(one.kernel.partition(" #")[0], one.trials[0].variant, one.chosen, one.gain) for one in report.kernels] == [
        ("56 pixels, 64 channels, 16 taps", "4 rows x 4 vectors", "14 rows x 2 vectors", 0.5),
        ("7x8 pixels, 64 channels, depthwise 3x3", "3 rows", "taps", 0.5),
        ("56 pixels, 64 channels, 64 taps", "4 rows x 4 vectors", "14 rows x 2 vectors", 0.5),
    ]
    assert report.gain == 0.5
    code = str(lower(found, resolve(TARGET), Phase.LINALG).module)
    assert code.count('variant = "14 rows x 2 vectors"') == 2
    assert code != str(lower(module, resolve(TARGET), Phase.LINALG).module)
    assert variants.TUNING not in module.operation.attributes, "the module that was given stays as it is"


@needs_vbmi
def test_ties_keep_the_choice_of_the_model() -> None:
    def little(tunable: Tunable) -> float:
        return 0.985 if tunable.variant else 1.0

    def unseen(_: Tunable) -> float:
        return 0.0

    for seconds in (fast(), little, unseen):
        found, report = tuned(qdialect.parse(NETWORK), TARGET, clock=clock_of(seconds))
        assert [one.chosen for one in report.kernels] == [one.trials[0].variant for one in report.kernels]
        assert report.gain == 0
        assert variants.wanted_variants(found, resolve(TARGET)) == {}


@needs_vbmi
def test_kernels_are_measured_once(kept: Store) -> None:
    first = tuned(qdialect.parse(NETWORK), TARGET, store=kept, clock=clock_of(fast("taps")))
    again = tuned(qdialect.parse(NETWORK), TARGET, store=kept, clock=clock_of(refuse))
    assert str(first[0]) == str(again[0])
    assert all(one.was_kept for one in again[1].kernels)
    assert [(one.trials, one.chosen, one.gain) for one in first[1].kernels] == [
        (one.trials, one.chosen, one.gain) for one in again[1].kernels
    ]
    other = tuned(qdialect.parse(NETWORK), "avx2", store=kept, clock=clock_of(fast()))
    assert not any(one.was_kept for one in other[1].kernels), "another target has decisions of its own"


@needs_vbmi
@pytest.mark.parametrize(
    "damage", [b"", b'{"seconds": {"3 rows": 1.0}, "chosen": "3 rows", "gain": 0.0}', b"{}", b"[1]", None]
)
def test_damaged_and_outdated_decisions_are_measured_again(damage: bytes | None, kept: Store) -> None:
    tuned(qdialect.parse(NETWORK), TARGET, store=kept, clock=clock_of(fast()))
    for path in entries(kept, "measured"):
        if damage is None:
            replaced(path, path.read_bytes()[:-1] + b"\0")
        else:
            kept.put(path.name, {"measured": damage})
    _, report = tuned(qdialect.parse(NETWORK), TARGET, store=kept, clock=clock_of(fast("taps")))
    assert [one.was_kept for one in report.kernels] == [False] * 3
    assert [one.chosen for one in report.changed] == ["taps"]


@needs_vbmi
def test_compile_keeps_decisions_only_with_the_cache(kept: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    counts: list[int] = []
    monkeypatch.setattr(tuning, "tuned", partial(tuned, clock=clock_of(fast("taps"), counts)))
    module = qdialect.parse(NETWORK)
    plain = qdialect.compile(module, cache=False)
    data = random_inputs(plain.inputs, 0)
    assert plain.tuning is None
    for use_cache, measured in ((False, 2), (False, 4), (True, 6), (True, 6)):
        found = qdialect.compile(module, tune=True, cache=use_cache)
        assert len(counts) == measured
        assert found.tuning is not None
        assert [one.chosen for one in found.tuning.changed] == ["taps"]
        np.testing.assert_array_equal(found(*data), plain(*data))


def variants_of(module: ir.Module, target: str) -> list[Tunable]:
    """How the kernels of `module` can be written."""
    copy = qdialect.parse(str(module))
    variants.set_wanted_variants(copy, resolve(target), {})
    calls = lower(copy, resolve(target), Phase.LINALG).calls
    return list({call.tunable.kernel: call.tunable for call in calls if call.tunable}.values())


# Portable code takes long to compile: of its variants those that the machine's own code lacks.
@pytest.mark.parametrize(
    ("target", "wanted"), [("host", ""), ("avx2,portable", "words|pairs"), ("amxint8,portable", "dots|tiles")]
)
def test_every_variant_has_the_same_bits(target: str, wanted: str) -> None:
    module = qdialect.parse(SMALL if wanted else NETWORK)
    plain = qdialect.compile(module, target="generic", cache=False)
    data = random_inputs(plain.inputs, 1)
    tunables = variants_of(module, target)
    names = list(dict.fromkeys(name for one in tunables for name in one.candidates))
    names = [name for name in names if not wanted or name in wanted.split("|")]
    assert names or host().is_generic
    for number in range(max((len(one.candidates) for one in tunables), default=0)):
        chosen = {one.kernel: one.candidates[number] for one in tunables if number < len(one.candidates)}
        if not set(chosen.values()) & set(names):
            continue
        copy = qdialect.parse(str(module))
        variants.set_wanted_variants(copy, resolve(target), chosen)
        np.testing.assert_array_equal(qdialect.compile(copy, target=target, cache=False)(*data), plain(*data))


def test_the_clock_sees_every_call() -> None:
    copy = qdialect.parse(NETWORK)
    variants.set_wanted_variants(copy, host(), {})
    module = lower(copy, host(), Phase.LINALG, clocked=True)
    (times,) = measure([module.module])
    assert times.shape[1] == len(module.calls)
    assert len(times) > 2
    assert (times > 0).all()
    assert times.max() < 1


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = tmp_path / "network.mlir"
    found.write_text(NETWORK)
    return found


def test_tuning_is_for_one_shape_of_compiled_code(path: Path) -> None:
    with pytest.raises(InputError, match="tune must be given without batch='dynamic'"):
        qdialect.compile(path, batch="dynamic", tune=True)
    with pytest.raises(InputError, match="tune must be given without externals"):
        qdialect.compile(path, externals={"x": path}, tune=True)


def test_a_variant_that_is_none_of_a_kernel_is_refused_and_one_of_another_target_is_not() -> None:
    module = qdialect.parse(NETWORK)
    kernel = variants_of(module, TARGET)[0].kernel
    variants.set_wanted_variants(module, resolve(TARGET), {kernel: "99 rows x 4 vectors", "unknown": "taps"})
    with pytest.raises(
        CompileError, match=r"variant of '56 pixels, .*' must be one of .*, but got '99 rows x 4 vectors'"
    ):
        lower(module, resolve(TARGET), Phase.LINALG)
    assert lower(module, resolve("avx2"), Phase.LINALG).calls


@needs_vbmi
def test_a_file_is_compiled_with_measurements_for_its_cpu(
    kept: Store, path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    written = path.with_suffix(".s")
    monkeypatch.setattr(compile_command, "tuned", partial(tuned, clock=clock_of(fast("taps"))))
    arguments = [str(path), "-o", str(written), "--emit", "mlir", "--tune"]
    assert compile_command.main([*arguments, "--mcpu", TARGET]) == 0
    assert f"{TARGET}: 3 kernels measured, 1 changed" in capsys.readouterr().err
    tuned_code = written.read_text()
    assert compile_command.main([*arguments[:-1], "--mcpu", TARGET]) == 0
    assert tuned_code != written.read_text()
    assert compile_command.main([*arguments, "--targets", f"{TARGET},avx2"]) == 1
    assert "--tune must be given for one CPU, but got avx512vbmi, avx2" in capsys.readouterr().err


# The time of each kernel call of an executable.


def test_calls_are_timed_and_stay_the_same(tmp_path: Path, kept: Store) -> None:
    path = tmp_path / "model.mlir"
    path.write_text(CLIP)
    for options in (qdialect.CompileOptions(), qdialect.CompileOptions(), qdialect.CompileOptions(cache=False)):
        executable = qdialect.compile(path, options)
        times = executable.profile()
        assert [one.call.label for one in times] == [call.label for call in executable.calls]
        assert all(0 <= one.seconds < 1 for one in times)
    path.write_text(CLIP.replace("return %0", "return %x"))
    with pytest.raises(InputError, match="must be as it was when it was compiled to be profiled"):
        executable.profile()


def test_executables_that_are_not_of_a_file_have_no_profile(tmp_path: Path) -> None:
    path = tmp_path / "model.mlir"
    path.write_text(CLIP)
    saved = tmp_path / "saved.so"
    qdialect.compile(path).save(saved)
    for executable in (qdialect.load(saved), qdialect.compile(CLIP.encode()), qdialect.compile(path, batch="dynamic")):
        with pytest.raises(InputError, match="must be compiled from a file, as a whole and for one batch size"):
            executable.profile()
