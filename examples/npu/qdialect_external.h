/* What a library is told that computes ops of networks: qdialect_external. */
#ifndef QDIALECT_EXTERNAL_H
#define QDIALECT_EXTERNAL_H

#include <stddef.h>
#include <stdint.h>

/* What all networks share. */
#ifndef QDIALECT_ABI_VERSION
#define QDIALECT_ABI_VERSION 3

enum qdialect_dtype {
  QDIALECT_BOOL = 1,
  QDIALECT_INT8 = 2,
  QDIALECT_UINT8 = 3,
  QDIALECT_INT16 = 4,
  QDIALECT_UINT16 = 5,
  QDIALECT_INT32 = 6,
  QDIALECT_INT64 = 7,
  QDIALECT_FLOAT32 = 8,
  QDIALECT_FLOAT16 = 9,
  QDIALECT_BFLOAT16 = 10
};

enum qdialect_error {
  QDIALECT_OK = 0,
  QDIALECT_ERROR_CPU = 1,
  QDIALECT_ERROR_NULL = 2,
  QDIALECT_ERROR_ALIGNMENT = 3,
  QDIALECT_ERROR_THREADS = 4,
  QDIALECT_ERROR_EXTERNAL = 5,
  QDIALECT_ERROR_BATCH = 6
};

enum qdialect_quantization {
  QDIALECT_HAS_SCALE = 1,
  QDIALECT_HAS_ZERO_POINT = 2
};

/* An input or output. Offsets are in bytes from the start of the qdialect_network that it is part of. */
typedef struct qdialect_tensor {
  uint64_t size;         /* bytes of the array or, where it has a batch, of an entry of it */
  double scale;          /* f32 value = scale * (quantized value - zero_point) */
  int64_t zero_point;
  uint32_t quantization; /* a sum of qdialect_quantization: which of the two are known */
  uint32_t dtype;        /* a qdialect_dtype */
  uint32_t rank;
  uint32_t shape;        /* offset of rank numbers, int64_t; the first is -1 where the array has a batch */
  uint32_t name;         /* offset of UTF-8 text that ends with a zero byte */
  uint32_t batch;        /* elements of the first dimension for an entry of the batch, 0 without one */
} qdialect_tensor;

/* A network, as constant data without addresses. */
typedef struct qdialect_network {
  char magic[8];         /* "qdialect", without a zero byte */
  uint32_t abi_version;  /* QDIALECT_ABI_VERSION of the library */
  uint32_t size;         /* bytes of this description, with all that it has offsets of */
  uint32_t input_count;
  uint32_t output_count;
  uint32_t inputs;       /* offset of input_count times qdialect_tensor */
  uint32_t outputs;      /* offset of output_count times qdialect_tensor */
  uint32_t name;         /* offset of text, as of a tensor */
  uint32_t details;      /* offset of JSON for tools; its content may change in any release */
  uint32_t threads;
  uint32_t versions;
  uint32_t state_count;
  uint32_t states;       /* offset of state_count numbers, uint32_t: which of the outputs are states */
  uint64_t workspace_size;
} qdialect_network;

static __inline const qdialect_tensor *qdialect_input(const qdialect_network *network, size_t index) {
  return (const qdialect_tensor *)(const void *)((const char *)network + network->inputs) + index;
}

static __inline const qdialect_tensor *qdialect_output(const qdialect_network *network, size_t index) {
  return (const qdialect_tensor *)(const void *)((const char *)network + network->outputs) + index;
}

static __inline const char *qdialect_name(const qdialect_network *network, const qdialect_tensor *tensor) {
  return (const char *)network + tensor->name;
}

static __inline const int64_t *qdialect_shape(const qdialect_network *network, const qdialect_tensor *tensor) {
  return (const int64_t *)(const void *)((const char *)network + tensor->shape);
}
#elif QDIALECT_ABI_VERSION != 3
#error "all networks of a program must have the same QDIALECT_ABI_VERSION"
#endif

/* What functions of other libraries get that compute ops of a network. */
#ifndef QDIALECT_EXTERNAL_ABI_VERSION
#define QDIALECT_EXTERNAL_ABI_VERSION 1

#include <string.h>

enum qdialect_source {
  QDIALECT_SOURCE_CONSTANT = 1,
  QDIALECT_SOURCE_INPUT = 2,
  QDIALECT_SOURCE_OPERATION = 3
};

enum qdialect_form {
  QDIALECT_FORM_INTEGER = 1,
  QDIALECT_FORM_NUMBER = 2,
  QDIALECT_FORM_TEXT = 3,
  QDIALECT_FORM_BYTES = 4
};

/* A function and the ops that it computes, as constant data without addresses. Offsets, also those in a
   qdialect_tensor of it, are in bytes from the start of the qdialect_external. */
typedef struct qdialect_external {
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
} qdialect_external;

typedef struct qdialect_operation {
  qdialect_tensor result;
  uint32_t name;            /* offset of text, such as "qnn.fused_conv2d" */
  uint32_t operand_count;
  uint32_t operands;        /* offset of operand_count times qdialect_operand */
  uint32_t attribute_count;
  uint32_t attributes;      /* offset of attribute_count times qdialect_attribute */
  uint32_t stage_count;
  uint32_t stages;          /* offset of stage_count times qdialect_stage, the epilogue in its order */
  uint32_t reserved;
} qdialect_operation;

typedef struct qdialect_operand {
  qdialect_tensor tensor;   /* its name is "data", "weight", "bias" or "residual" */
  uint32_t source;          /* a qdialect_source */
  uint32_t index;           /* of the input, or of the operation whose result it is */
  uint32_t data;            /* offset of the elements of a constant, a multiple of 64 */
  uint32_t reserved;
} qdialect_operand;

typedef struct qdialect_stage {
  uint32_t name;            /* offset of text, such as "requantize" */
  uint32_t attribute_count;
  uint32_t attributes;      /* offset of attribute_count times qdialect_attribute */
  uint32_t reserved;
} qdialect_stage;

typedef struct qdialect_attribute {
  uint32_t name;            /* offset of text */
  uint32_t form;            /* a qdialect_form: int64_t, double, text, or uint8_t of a table */
  uint32_t rank;            /* 0 for a single value, 1 for several */
  uint32_t count;
  uint32_t data;            /* offset of the values */
  uint32_t reserved;
} qdialect_attribute;

/* A function of another library. Inputs and outputs are dense row-major arrays of the types in `function`.
   Returns 0, or something else where it failed: the network then returns QDIALECT_ERROR_EXTERNAL. */
typedef int qdialect_external_function(const qdialect_external *function, const void *const *inputs,
                                       void *const *outputs);

static inline const void *qdialect_at(const qdialect_external *function, uint32_t offset) {
  return (const char *)function + offset;
}

static inline const qdialect_operation *qdialect_operation_of(const qdialect_external *function, size_t index) {
  return (const qdialect_operation *)qdialect_at(function, function->operations) + index;
}

static inline const int64_t *qdialect_extents(const qdialect_external *function, const qdialect_tensor *tensor) {
  return (const int64_t *)qdialect_at(function, tensor->shape);
}

/* The operand of that name, or a null pointer. */
static inline const qdialect_operand *qdialect_operand_of(const qdialect_external *function,
                                                          const qdialect_operation *operation, const char *name) {
  const qdialect_operand *operands = (const qdialect_operand *)qdialect_at(function, operation->operands);
  for (uint32_t i = 0; i < operation->operand_count; ++i)
    if (strcmp((const char *)qdialect_at(function, operands[i].tensor.name), name) == 0) return operands + i;
  return NULL;
}

/* The attribute of that name among `count`, or a null pointer. */
static inline const qdialect_attribute *qdialect_attribute_of(const qdialect_external *function, uint32_t attributes,
                                                              uint32_t count, const char *name) {
  const qdialect_attribute *found = (const qdialect_attribute *)qdialect_at(function, attributes);
  for (uint32_t i = 0; i < count; ++i)
    if (strcmp((const char *)qdialect_at(function, found[i].name), name) == 0) return found + i;
  return NULL;
}
#elif QDIALECT_EXTERNAL_ABI_VERSION != 1
#error "all networks of a program must have the same QDIALECT_EXTERNAL_ABI_VERSION"
#endif

#endif
