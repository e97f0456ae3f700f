"""The time of each kernel call of an executable."""

from __future__ import annotations

from pathlib import Path

import pytest
from cached import CLIP
from cached import kept as kept

import qdialect
from qdialect.cache.store import Store
from qdialect.support.diagnostics import InputError


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


def test_what_is_not_of_a_file_has_no_profile(tmp_path: Path) -> None:
    path = tmp_path / "model.mlir"
    path.write_text(CLIP)
    saved = tmp_path / "saved.so"
    qdialect.compile(path).save(saved)
    for executable in (qdialect.load(saved), qdialect.compile(CLIP.encode()), qdialect.compile(path, batch="dynamic")):
        with pytest.raises(InputError, match="must be compiled from a file, as a whole and for one batch size"):
            executable.profile()
