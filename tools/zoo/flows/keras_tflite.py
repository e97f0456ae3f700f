"""Keras networks to TFLite: by TensorFlow's converter, or by ai-edge-quantizer from its float models."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tools.zoo.flows.samples import Sample
from tools.zoo.networks.network import Built
from tools.zoo.packages import imported

EDGE_RECIPES = {
    "edge_int8": "static_wi8_ai8",
    "edge_16x8": "static_wi8_ai16",
    "edge_dynamic": "dynamic_wi8_afp32",
    "edge_dynamic_int4": "dynamic_wi4_afp32",
    "edge_weights": "weight_only_wi8_afp32",
}
"""By flow: the recipe of ai-edge-quantizer."""


def convert(built: Built, flow: str, target: Path, samples: Sequence[Sample]) -> None:
    """Write the ``.tflite`` file of `built`, calibrated on `samples` where the flow has quantized activations."""
    tensorflow = imported("tensorflow")
    with tempfile.TemporaryDirectory() as folder:
        _save(tensorflow, built.model, folder)
        converter = tensorflow.lite.TFLiteConverter.from_saved_model(folder)
        if flow in EDGE_RECIPES:
            target.write_bytes(_by_recipe(converter.convert(), flow, samples))
            return
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


def _by_recipe(model: bytes, flow: str, samples: Sequence[Sample]) -> bytes:
    recipe = getattr(imported("ai_edge_quantizer.recipe"), EDGE_RECIPES[flow])()
    quantizer = imported("ai_edge_quantizer").Quantizer(model, recipe)
    found = None
    if quantizer.need_calibration:
        signatures = imported("ai_edge_litert.interpreter").Interpreter(model_content=model).get_signature_list()
        ((signature, names),) = signatures.items()
        data = [dict(zip(names["inputs"], sample, strict=True)) for sample in samples]
        found = quantizer.calibrate({signature: data}, num_threads=1)
    return bytes(quantizer.quantize(found, enable_progress_report=False).quantized_model)
