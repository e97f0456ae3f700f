"""TensorFlow's converter: Keras networks to integer and to dynamic-range TFLite."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tools.zoo.flows.samples import Sample
from tools.zoo.networks.network import Built
from tools.zoo.packages import imported

TFLITE_FLOWS = ("tflite_int8", "tflite_dynamic")


def convert(built: Built, flow: str, target: Path, samples: Sequence[Sample]) -> None:
    """Write the ``.tflite`` file of `built`: integer with `samples` for the calibration, or dynamic-range."""
    tensorflow = imported("tensorflow")
    with tempfile.TemporaryDirectory() as folder:
        _save(tensorflow, built.model, folder)
        converter = tensorflow.lite.TFLiteConverter.from_saved_model(folder)
        converter.optimizations = [tensorflow.lite.Optimize.DEFAULT]
        if flow == "tflite_int8":
            _set_integer(tensorflow, converter, samples)
        target.write_bytes(converter.convert())


def _save(tensorflow: Any, model: Any, folder: str) -> None:
    """Write the model with a batch of 1: recurrent networks convert with a fixed batch only."""
    shape = (1, *model.input_shape[1:])
    if type(model).__module__.startswith("tf_keras."):
        signature = tensorflow.TensorSpec(shape, "float32")
        call = tensorflow.function(model).get_concrete_function(signature)
        tensorflow.saved_model.save(model, folder, signatures=call)
    else:
        signature = [imported("keras").InputSpec(shape=shape, dtype="float32")]
        model.export(folder, input_signature=signature, verbose=False)


def _set_integer(tensorflow: Any, converter: Any, samples: Sequence[Sample]) -> None:
    def calibration() -> Iterator[list[Any]]:
        for sample in samples:
            yield list(sample)

    converter.representative_dataset = calibration
    converter.target_spec.supported_ops = [tensorflow.lite.OpsSet.TFLITE_BUILTINS_INT8]
    converter.inference_input_type = converter.inference_output_type = tensorflow.int8
