"""What of `lit.TestingConfig` the project uses."""

from collections.abc import Sequence

from lit.formats import ShTest

class TestingConfig:
    name: str
    test_format: ShTest
    suffixes: Sequence[str]
    excludes: Sequence[str]
    test_source_root: str
    test_exec_root: str
    environment: dict[str, str]
    substitutions: list[tuple[str, str]]
    available_features: set[str]
