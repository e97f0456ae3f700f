"""Compares operators with their frameworks."""

import sys
from pathlib import Path

# What the tests share: recordings, tolerances.
sys.path.append(str(Path(__file__).parents[2] / "test"))
