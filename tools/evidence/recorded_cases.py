"""The recorded cases of quantized operators, which the tests keep beside what a framework gave for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache

import recordings
from recordings import Recording
from tolerances import loosest

from qdialect.frontends import onnx, tflite
from tools.evidence.case import Case, Key, Source

# By the first word of a file's name: the format, the profile, and whose numbers they are.
_SOURCES = {
    "tflite": (".tflite", "tflite", "LiteRT, reference kernels"),
    "xnnpack": (".tflite", "tflite-xnnpack", "LiteRT, XNNPACK"),
    "onnx": (".onnx", "", "ONNX Runtime"),
}
_NODES = {".tflite": tflite.nodes_of, ".onnx": onnx.nodes_of}


class RecordedCases(Source):
    """Each model is one operator, or a few; the form is whose numbers it is compared with."""

    name = "recorded"

    def rows(self) -> Iterator[Key]:
        for path in sorted(recordings.FOLDER.glob("*.npz")):
            source = path.stem.split("_")[0]
            if source not in _SOURCES:
                continue
            suffix, _, who = _SOURCES[source]
            for name, one in _recordings(path.stem).items():
                types = " ".join(dict.fromkeys(value.dtype.name for value in one.inputs))
                yield Key(f"{suffix} {operator_of(suffix, one.model)}", types, who, f"{path.stem}/{name}")

    def case(self, key: Key) -> Case:
        family, _, name = key.origin.partition("/")
        suffix, profile, _ = _SOURCES[family.split("_")[0]]
        one = _recordings(family)[name]
        kinds = [node.kind for node in _NODES[suffix](one.model)]
        return Case(suffix, one.model, one.inputs, one.outputs, loosest(suffix, kinds).steps, profile)


def operator_of(suffix: str, model: bytes) -> str:
    """What a case is about: its first operator that does more than quantize, and all of a pair's."""
    kinds = dict.fromkeys(node.kind for node in _NODES[suffix](model))
    inner = [kind for kind in kinds if not kind.lower().endswith(("quantizelinear", "quantize"))]
    return "+".join((inner or list(kinds))[:3])


@cache
def _recordings(family: str) -> Mapping[str, Recording]:
    return recordings.read_family(family)
