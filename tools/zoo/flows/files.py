"""The files of one network: its float model, its inputs and a model for each flow."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Files:
    """Paths in the folder of a network."""

    folder: Path

    @property
    def float_onnx(self) -> Path:
        """What ONNX Runtime's tools quantize; shared by their flows."""
        return self.folder / "float.onnx"

    @property
    def inputs(self) -> Path:
        """The inputs that the network is measured on."""
        return self.folder / "inputs.npz"

    def model(self, flow: str, suffix: str) -> Path:
        """The quantized model of a flow."""
        return self.folder / f"{self.folder.name}.{flow}{suffix}"

    def result(self, flow: str) -> Path:
        """What became of it."""
        return self.folder / f"{self.folder.name}.{flow}.json"

    def cache(self, flow: str) -> Path:
        """The compile cache of this model alone, so that no other model makes its compilation faster."""
        return self.folder / f"{self.folder.name}.{flow}.cache"
