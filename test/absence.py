"""What a test does where the files it needs are not here."""

import os
from typing import NoReturn

import pytest


def absent(reason: str) -> NoReturn:
    """Skip with the reason; in CI, where everything has to be, fail."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)
