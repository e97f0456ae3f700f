"""The C header's declarations of extern functions: their arguments, and the parameters of each as a constant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from qdialect.support.externals import (
    EXTERNAL_ABI_VERSION,
    AttributeForm,
    ExternalFunction,
    ExternalOperation,
    Source,
    Value,
)

_BIAS = "bias"
_C_TYPES = {"f": "double", "i": "int64_t", "u": "uint8_t"}

_SHARED = """\
/* What functions of other libraries get that compute ops of a network. */
#ifndef QDIALECT_EXTERNAL_ABI_VERSION
#define QDIALECT_EXTERNAL_ABI_VERSION {version}

#include <string.h>

enum qdialect_source {{
{sources}
}};

enum qdialect_form {{
{forms}
}};

/* A function and the ops that it computes, as constant data without addresses. Offsets, also those in a
   qdialect_tensor of it, are in bytes from the start of the qdialect_external. */
typedef struct qdialect_external {{
  uint32_t abi_version;     /* QDIALECT_EXTERNAL_ABI_VERSION of the compiler */
  uint32_t size;            /* bytes, with all that it has offsets of */
  uint32_t name;            /* offset of text, of this function alone */
  uint32_t target;          /* offset of text, such as "npu" */
  uint32_t symbol;          /* offset of text: the C function that is called */
  uint32_t nodes;           /* offset of text: the model's nodes */
  uint32_t location;        /* offset of text: "file:line:column", or "" */
  uint32_t input_count;
  uint32_t inputs;          /* offset of input_count times qdialect_tensor */
  uint32_t output_count;    /* 1 */
  uint32_t outputs;         /* offset of output_count times qdialect_tensor */
  uint32_t operation_count;
  uint32_t operations;      /* offset of operation_count times qdialect_operation; the last one computes the output */
  uint32_t reserved;
}} qdialect_external;

typedef struct qdialect_operation {{
  qdialect_tensor result;
  uint32_t name;            /* offset of text, such as "qnn.fused_conv2d" */
  uint32_t operand_count;
  uint32_t operands;        /* offset of operand_count times qdialect_operand */
  uint32_t attribute_count;
  uint32_t attributes;      /* offset of attribute_count times qdialect_attribute */
  uint32_t stage_count;
  uint32_t stages;          /* offset of stage_count times qdialect_stage, the epilogue in its order */
  uint32_t reserved;
}} qdialect_operation;

typedef struct qdialect_operand {{
  qdialect_tensor tensor;   /* its name is "data", "weight", "bias" or "residual" */
  uint32_t source;          /* a qdialect_source */
  uint32_t index;           /* of the input, or of the operation whose result it is */
  uint32_t data;            /* offset of the elements of a constant, a multiple of 64 */
  uint32_t reserved;
}} qdialect_operand;

typedef struct qdialect_stage {{
  uint32_t name;            /* offset of text, such as "requantize" */
  uint32_t attribute_count;
  uint32_t attributes;      /* offset of attribute_count times qdialect_attribute */
  uint32_t reserved;
}} qdialect_stage;

typedef struct qdialect_attribute {{
  uint32_t name;            /* offset of text */
  uint32_t form;            /* a qdialect_form: int64_t, double, text, or uint8_t of a table */
  uint32_t rank;            /* 0 for a single value, 1 for several */
  uint32_t count;
  uint32_t data;            /* offset of the values */
  uint32_t reserved;
}} qdialect_attribute;

/* A function of another library. Inputs and outputs are dense row-major arrays of the types in `function`.
   Returns 0, or something else where it failed: the network then returns QDIALECT_ERROR_EXTERNAL. */
typedef int qdialect_external_function(const qdialect_external *function, const void *const *inputs,
                                       void *const *outputs);

static inline const void *qdialect_at(const qdialect_external *function, uint32_t offset) {{
  return (const char *)function + offset;
}}

static inline const qdialect_operation *qdialect_operation_of(const qdialect_external *function, size_t index) {{
  return (const qdialect_operation *)qdialect_at(function, function->operations) + index;
}}

static inline const int64_t *qdialect_extents(const qdialect_external *function, const qdialect_tensor *tensor) {{
  return (const int64_t *)qdialect_at(function, tensor->shape);
}}

/* The operand of that name, or a null pointer. */
static inline const qdialect_operand *qdialect_operand_of(const qdialect_external *function,
                                                          const qdialect_operation *operation, const char *name) {{
  const qdialect_operand *operands = (const qdialect_operand *)qdialect_at(function, operation->operands);
  for (uint32_t i = 0; i < operation->operand_count; ++i)
    if (strcmp((const char *)qdialect_at(function, operands[i].tensor.name), name) == 0) return operands + i;
  return NULL;
}}

/* The attribute of that name among `count`, or a null pointer. */
static inline const qdialect_attribute *qdialect_attribute_of(const qdialect_external *function, uint32_t attributes,
                                                              uint32_t count, const char *name) {{
  const qdialect_attribute *found = (const qdialect_attribute *)qdialect_at(function, attributes);
  for (uint32_t i = 0; i < count; ++i)
    if (strcmp((const char *)qdialect_at(function, found[i].name), name) == 0) return found + i;
  return NULL;
}}
#elif QDIALECT_EXTERNAL_ABI_VERSION != {version}
#error "all networks of a program must have the same QDIALECT_EXTERNAL_ABI_VERSION"
#endif
"""


def shared_text() -> str:
    """The declarations of every function; they need `qdialect_tensor`."""
    return _SHARED.format(
        version=EXTERNAL_ABI_VERSION,
        sources=",\n".join(f"  QDIALECT_SOURCE_{source.name} = {source.value}" for source in Source),
        forms=",\n".join(f"  QDIALECT_FORM_{form.name} = {form.value}" for form in AttributeForm),
    )


def network_text(name: str, functions: Sequence[ExternalFunction]) -> str:
    """The functions that network `name` calls, and a constant with the parameters of each call."""
    symbols = dict.fromkeys(function.symbol for function in functions)
    declared = [
        "/* Functions of other libraries that the network calls: link what has them. */",
        *(f"qdialect_external_function {symbol};" for symbol in symbols),
        "",
        "/* What is known of each call, but the weights: its function gets the same at run time. */",
        *(line for index, function in enumerate(functions) for line in _constant(f"{name}_external_{index}", function)),
    ]
    return "\n".join([shared_text(), *declared, ""])


def _constant(symbol: str, function: ExternalFunction) -> list[str]:
    fields = [_operation(operation) for operation in function.operations]
    if len(fields) > 1:
        fields = [{f"op{index}": field for index, field in enumerate(fields)}]
    declared, value = _struct(fields[0], "  ")
    return [
        f"/* {quoted(function.name)} at node {quoted(function.nodes)}, computed by {function.symbol} */",
        f"static const {declared} {symbol} = {value};",
    ]


_Fields = Mapping[str, "Value | _Fields"]


def _operation(operation: ExternalOperation) -> _Fields:
    fields: dict[str, Value | _Fields] = {"op": operation.name}
    for name, operand in operation.operands.items():
        fields[f"{name}_shape"] = operand.tensor.shape
    fields["output_shape"] = operation.result.shape
    fields |= operation.attributes
    bias = operation.operands.get(_BIAS)
    if bias is not None and bias.data is not None:
        fields[_BIAS] = tuple(bias.data.ravel().tolist())
    for number, stage in enumerate(operation.stages):
        fields[f"stage{number}_{stage.name}"] = stage.attributes
    return fields


def _struct(fields: _Fields, indent: str) -> tuple[str, str]:
    """Its type and its value."""
    members = [(name, *_member(value, indent)) for name, value in fields.items()]
    lines = [f"{indent}{type_} {name}{extent};" for name, type_, extent, _ in members]
    values = ", ".join(value for *_, value in members)
    return "\n".join(["struct {", *lines, f"{indent[2:]}}}"]), f"{{{values}}}"


def _member(value: Value | _Fields, indent: str) -> tuple[str, str, str]:
    """Type, extent and value of a member."""
    if isinstance(value, Mapping):
        type_, text = _struct(value, f"{indent}  ")
        return type_, "", text
    if isinstance(value, str):
        # GCC counts the zero byte.
        return "char", f"[{len(value.encode(errors='backslashreplace')) + 1}]", quoted(value)
    numbers = np.array(value)
    type_ = _C_TYPES[numbers.dtype.kind]
    if not numbers.ndim:
        return type_, "", _literal(numbers.item())
    return type_, f"[{max(numbers.size, 1)}]", f"{{{', '.join(map(_literal, numbers.tolist())) or '0'}}}"


def _literal(number: float) -> str:
    """A number as C reads it, a float with all its digits."""
    if isinstance(number, float):
        return repr(number)
    return f"INT64_C({number})" if abs(number) >= 1 << 31 else str(number)


# Names of a stranger's model as text of C.

_PLAIN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789 _.,:;/()[]{}<>=+-#@!$%&^|~'`")


def quoted(text: str) -> str:
    """`text` as a string literal of C, which is harmless in a comment too.

    Whatever ends a literal, a line or a comment is an octal escape of its UTF-8 bytes, and so are the characters of
    trigraphs.
    """
    raw = text.encode(errors="backslashreplace")
    return f'"{"".join(chr(byte) if chr(byte) in _PLAIN else f"{chr(92)}{byte:03o}" for byte in raw)}"'
