"""The real networks of the tests: in ``$QDIALECT_MODELS``, and of a checkout in ``../shared/models`` and ``models``.

No third-party model is part of the project; ``make models`` downloads those that are missing.
"""

from __future__ import annotations

import os
from pathlib import Path


def find(name: str, *more: Path) -> Path | None:
    """The file `name`, which may be without its ``.tflite``, or None where it is nowhere; last, it may be in `more`.

    It is in a folder directly, or in its folder ``tflite``.
    """
    for folder in [*_folders(), *more]:
        for file in (name, f"{name}.tflite"):
            for candidate in (folder / file, folder / "tflite" / file):
                if candidate.is_file():
                    return candidate
    return None


def find_reference(name: str, kind: str = "") -> Path | None:
    """Recorded inputs and outputs of the model `name`, or None.

    They are in ``<name>.npz``; `kind` names another recording, as ``layers`` does ``<name>.layers.npz``.
    """
    return find(f"{name}.{kind}.npz" if kind else f"{name}.npz")


def _folders() -> list[Path]:
    root, named = Path(__file__).resolve().parents[2], os.environ.get("QDIALECT_MODELS")
    folders = [root.parent / "shared" / "models", root / "models"] if (root / "pyproject.toml").is_file() else []
    return [Path(named), *folders] if named else folders
