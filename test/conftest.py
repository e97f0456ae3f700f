"""Shared by all tests: the real networks, and how hard the random tests search."""

import gc
import os
from collections.abc import Callable, Generator, Mapping
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest
from absence import absent
from hypothesis import HealthCheck, settings
from numpy.typing import NDArray

from qdialect.bench import models
from qdialect.passes import registry as pass_registry
from qdialect.support import registry

# No test is to pass because of what was compiled before.
os.environ["QDIALECT_CACHE"] = "off"

# lit runs these.
collect_ignore = ["lit"]

# The same examples in every run, so that a change is never blamed for luck; long campaigns draw new ones.
settings.register_profile("default", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("long", parent=settings.get_profile("default"), derandomize=False, max_examples=5000)
settings.load_profile("default")


def pytest_collection_finish() -> None:
    """The modules imported by now stay: full collections of garbage would go through all of it again and again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def own_registrations() -> Generator[None]:
    """Registrations of a test are gone after it: its passes, and those of modules from outside."""
    known = dict(pass_registry.all_passes())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, "_FOREIGN", set[str]())
        yield
    registered = vars(pass_registry)["_registered"]
    registered.clear()
    registered.update(known)


def _absent(what: str) -> NoReturn:
    absent(f"{what} is not here: run 'make models' or set QDIALECT_MODELS")


@pytest.fixture(scope="session")
def require_model() -> Callable[[str], Path]:
    """The path of a model by its name in `qdialect.bench.models`; absent: the test is skipped, in CI it fails."""

    def require(name: str) -> Path:
        return models.find(name) or _absent(f"model {name}")

    return require


@pytest.fixture(scope="session")
def require_reference() -> Callable[..., Mapping[str, NDArray[Any]]]:
    """The recorded arrays of a model by name and kind (``layers``); absent: skipped, in CI failed."""

    def require(name: str, kind: str = "") -> Mapping[str, NDArray[Any]]:
        path = models.find_reference(name, kind) or _absent(f"the recording of {name}")
        with np.load(path) as arrays:
            return dict(arrays)

    return require
