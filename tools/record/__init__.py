"""Recordings of frameworks: what ONNX Runtime and LiteRT compute, for the tests that compare with them.

README.md of this folder says what each family is and how to add a case.
"""

import sys
from pathlib import Path

# What tests share (writers of models, the format of recordings) lies in test/.
sys.path.append(str(Path(__file__).resolve().parents[2] / "test"))
