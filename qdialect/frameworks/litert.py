"""LiteRT's interpreter, with its own operators alone: no delegate or library of custom operators is ever loaded.

Among its own are the custom operators that it registers itself, such as ``TFLite_Detection_PostProcess``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdialect.diagnostics import ImportModelError, InputError
from qdialect.frameworks.framework import Framework

Array = NDArray[Any]

FRAMEWORK = Framework("LiteRT", "ai_edge_litert.interpreter")
_SCHEMA = "ai_edge_litert.schema_py_generated"


def schema() -> Any:
    """The classes of the flatbuffer schema, those that write among them."""
    FRAMEWORK.load()
    return import_module(_SCHEMA)


def load(
    content: bytes, threads: int, *, is_reference: bool, needs_delegate: bool = False
) -> Callable[[Sequence[Array]], Sequence[Array]]:
    """A model as a function of its inputs, in its order; with `is_reference` by the reference kernels.

    Else it is run as LiteRT runs it by default, by XNNPACK's delegate where that takes operators, or without it where
    it fails, unless the model `needs_delegate`.

    Raises `ImportModelError` for a model that LiteRT does not take. The function raises `InputError` where it fails.
    """
    kinds = FRAMEWORK.load().OpResolverType
    try:
        interpreter = _interpreter(content, threads, kinds.BUILTIN_REF if is_reference else kinds.AUTO)
    except ImportModelError:
        if is_reference or needs_delegate:
            raise
        interpreter = _interpreter(content, threads, kinds.BUILTIN_WITHOUT_DEFAULT_DELEGATES)
    inputs = [details["index"] for details in interpreter.get_input_details()]
    outputs = [details["index"] for details in interpreter.get_output_details()]
    # An interpreter has one set of tensors.
    lock = Lock()

    def call(arrays: Sequence[Array]) -> Sequence[Array]:
        try:
            with lock:
                for index, array in zip(inputs, arrays, strict=True):
                    interpreter.set_tensor(index, np.ascontiguousarray(array))
                # What an operator keeps from call to call starts anew in each.
                interpreter.reset_all_variables()
                interpreter.invoke()
                return [interpreter.get_tensor(index) for index in outputs]
        except Exception as error:
            reason = " ".join(str(error).split())
            raise InputError(f"{FRAMEWORK.name} cannot run its part of the model: {reason}") from error

    return call


def _interpreter(content: bytes, threads: int, resolver: Any) -> Any:
    package = FRAMEWORK.load()
    try:
        interpreter = package.Interpreter(
            model_content=content, num_threads=threads, experimental_op_resolver_type=resolver
        )
        interpreter.allocate_tensors()
    # Its exceptions have no base of their own.
    except Exception as error:
        raise ImportModelError(f"{FRAMEWORK.name} does not take it: {' '.join(str(error).split())}") from error
    return interpreter
