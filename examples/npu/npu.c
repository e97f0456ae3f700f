/* A library in the place of an accelerator: it takes quantized convolutions with all their scales and zero points.

     cc -std=c11 -O2 -fPIC -shared npu.c -lm -o libnpu.so

   Data and weights are u8 or s8, the result is 8-bit again: what makes it so, the output's scale and zero point, the
   rounding mode and the clamp, comes with the op. The loop nests are its own. npu.py says which ops it takes. */
#include <math.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

#include "qdialect_external.h"

enum { UNSUPPORTED = 1, NO_MEMORY = 2 };

static atomic_ulong convolutions;

/* How many convolutions it has computed. */
unsigned long npu_convolutions(void) { return atomic_load(&convolutions); }

typedef struct attributes {
  const qdialect_external *function;
  uint32_t first, count;
} attributes;

static const void *values_of(attributes from, const char *name, uint32_t *count) {
  const qdialect_attribute *found = qdialect_attribute_of(from.function, from.first, from.count, name);
  if (count) *count = found ? found->count : 0;
  return found ? qdialect_at(from.function, found->data) : NULL;
}

static double number(attributes from, const char *name) { return *(const double *)values_of(from, name, NULL); }

static int64_t integer(attributes from, const char *name) { return *(const int64_t *)values_of(from, name, NULL); }

static int is_text(attributes from, const char *name, const char *text) {
  return strcmp((const char *)values_of(from, name, NULL), text) == 0;
}

/* A value of 8 bits at an index. */
static int32_t at(const void *array, int is_signed, int64_t index) {
  return is_signed ? ((const int8_t *)array)[index] : ((const uint8_t *)array)[index];
}

/* A multiplier as q * 2^(exponent - 31), and how products with it are rounded. */
typedef struct multiplier {
  int64_t q;
  int exponent, is_double;
} multiplier;

static multiplier quantized(double real, int is_double) {
  multiplier found = {0, 0, is_double};
  int64_t q = (int64_t)floor(ldexp(frexp(real, &found.exponent), 31) + 0.5);
  if (q == INT64_C(1) << 31) {
    q >>= 1;
    ++found.exponent;
  }
  if (q == 0 || found.exponent < -31) return (multiplier){0, 0, is_double};
  found.q = q;
  return found;
}

static int64_t saturated(int64_t value, int64_t low, int64_t high) {
  return value < low ? low : value > high ? high : value;
}

static int64_t shifted_right(int64_t value, int count) {
  int64_t mask = (INT64_C(1) << count) - 1;
  return (value >> count) + ((value & mask) > (mask >> 1) + (value < 0));
}

static int64_t rescaled(int32_t sum, multiplier by) {
  if (!by.is_double) {
    int right = 31 - by.exponent;
    return ((int64_t)sum * by.q + (INT64_C(1) << (right - 1))) >> right;
  }
  int left = by.exponent > 0 ? by.exponent : 0, right = by.exponent < 0 ? -by.exponent : 0;
  int64_t high = saturated((int64_t)sum * (INT64_C(1) << left), INT32_MIN, INT32_MAX) * by.q;
  return shifted_right(saturated((high + (INT64_C(1) << 30)) >> 31, INT32_MIN, INT32_MAX), right);
}

typedef struct epilogue {
  multiplier *multipliers;
  int64_t zero_point, low, high;
} epilogue;

/* Its multipliers are to be freed. */
static int epilogue_of(const qdialect_external *function, const qdialect_operation *conv, attributes of,
                       uint32_t channels, epilogue *found) {
  const qdialect_stage *stages = (const qdialect_stage *)qdialect_at(function, conv->stages);
  int is_signed = conv->result.dtype == QDIALECT_INT8;
  if (conv->stage_count < 1 || conv->stage_count > 2) return UNSUPPORTED;
  if (strcmp((const char *)qdialect_at(function, stages[0].name), "requantize") != 0) return UNSUPPORTED;
  attributes requantize = {function, stages[0].attributes, stages[0].attribute_count};
  int is_double = is_text(requantize, "rounding", "fixed32_double");
  if (!is_double && !is_text(requantize, "rounding", "fixed64_up")) return UNSUPPORTED;
  found->zero_point = integer(requantize, "zero_point");
  found->low = is_signed ? INT8_MIN : 0;
  found->high = is_signed ? INT8_MAX : UINT8_MAX;
  if (conv->stage_count == 2) {
    if (strcmp((const char *)qdialect_at(function, stages[1].name), "clamp") != 0) return UNSUPPORTED;
    attributes clamp = {function, stages[1].attributes, stages[1].attribute_count};
    found->low = integer(clamp, "min");
    found->high = integer(clamp, "max");
  }
  uint32_t scale_count;
  const double *scales = (const double *)values_of(of, "weight_scales", &scale_count);
  double input = number(of, "input_scale"), output = number(requantize, "scale");
  int is_f64 = is_text(requantize, "multiplier", "f64");
  if (!is_f64 && !is_text(requantize, "multiplier", "f32_product")) return UNSUPPORTED;
  found->multipliers = malloc(channels * sizeof *found->multipliers);
  if (!found->multipliers) return NO_MEMORY;
  for (uint32_t c = 0; c < channels; ++c) {
    double weight = scales[scale_count == 1 ? 0 : c];
    double product = is_f64 ? input * weight : (double)((float)input * (float)weight);
    multiplier real = quantized(product / (is_f64 ? output : (double)(float)output), is_double);
    found->multipliers[c] = real;
  }
  return 0;
}

static int convolve(const qdialect_external *function, const qdialect_operation *conv, const void *data,
                    const void *weights, const int32_t *bias, void *output) {
  attributes of = {function, conv->attributes, conv->attribute_count};
  const qdialect_tensor *x = &qdialect_operand_of(function, conv, "data")->tensor;
  const qdialect_tensor *w = &qdialect_operand_of(function, conv, "weight")->tensor;
  const int64_t *in = qdialect_extents(function, x), *kernel = qdialect_extents(function, w);
  const int64_t *out = qdialect_extents(function, &conv->result);
  const int64_t *strides = (const int64_t *)values_of(of, "strides", NULL);
  const int64_t *padding = (const int64_t *)values_of(of, "padding", NULL);
  const int64_t *dilation = (const int64_t *)values_of(of, "dilation", NULL);
  uint32_t point_count;
  const int64_t *points = (const int64_t *)values_of(of, "weight_zero_points", &point_count);
  int32_t zero = (int32_t)integer(of, "input_zero_point");
  int64_t depth = kernel[3], group = out[3] / integer(of, "groups");
  int data_signed = x->dtype == QDIALECT_INT8, weights_signed = w->dtype == QDIALECT_INT8;
  epilogue end;
  int error = epilogue_of(function, conv, of, (uint32_t)out[3], &end);
  if (error) return error;

  uint8_t *to = output;
  for (int64_t n = 0; n < out[0]; ++n)
    for (int64_t y = 0; y < out[1]; ++y)
      for (int64_t x0 = 0; x0 < out[2]; ++x0)
        for (int64_t c = 0; c < out[3]; ++c) {
          int32_t sum = bias[c], point = (int32_t)points[point_count == 1 ? 0 : c];
          for (int64_t i = 0; i < kernel[1]; ++i)
            for (int64_t j = 0; j < kernel[2]; ++j) {
              int64_t v = y * strides[0] + i * dilation[0] - padding[0];
              int64_t u = x0 * strides[1] + j * dilation[1] - padding[1];
              if (v < 0 || v >= in[1] || u < 0 || u >= in[2]) continue;
              int64_t from = ((n * in[1] + v) * in[2] + u) * in[3] + c / group * depth;
              int64_t tap = ((c * kernel[1] + i) * kernel[2] + j) * depth;
              for (int64_t k = 0; k < depth; ++k)
                sum += (at(data, data_signed, from + k) - zero) * (at(weights, weights_signed, tap + k) - point);
            }
          int64_t value = rescaled(sum, end.multipliers[c]) + end.zero_point;
          *to++ = (uint8_t)saturated(value, end.low, end.high);
        }
  free(end.multipliers);
  atomic_fetch_add(&convolutions, 1);
  return 0;
}

/* Where an operand is: an input, a constant, or what an operation before has computed. */
static const void *elements_of(const qdialect_external *function, const qdialect_operation *operation,
                               const char *name, const void *const *inputs, void *const *results) {
  const qdialect_operand *operand = qdialect_operand_of(function, operation, name);
  if (operand->source == QDIALECT_SOURCE_INPUT) return inputs[operand->index];
  if (operand->source == QDIALECT_SOURCE_OPERATION) return results[operand->index];
  return qdialect_at(function, operand->data);
}

static int compute(const qdialect_external *function, uint32_t index, const void *const *inputs,
                   void *const *results) {
  const qdialect_operation *operation = qdialect_operation_of(function, index);
  if (strcmp((const char *)qdialect_at(function, operation->name), "qnn.fused_conv2d") != 0) return UNSUPPORTED;
  if (operation->operand_count != 3) return UNSUPPORTED; /* a residual */
  if (qdialect_operand_of(function, operation, "bias")->tensor.dtype != QDIALECT_INT32) return UNSUPPORTED;
  const void *operands[3];
  const char *const names[3] = {"data", "weight", "bias"};
  for (int i = 0; i < 3; ++i) operands[i] = elements_of(function, operation, names[i], inputs, results);
  return convolve(function, operation, operands[0], operands[1], (const int32_t *)operands[2], results[index]);
}

/* A convolution. */
int npu_fused_conv2d(const qdialect_external *function, const void *const *inputs, void *const *outputs) {
  if (function->abi_version != QDIALECT_EXTERNAL_ABI_VERSION) return UNSUPPORTED;
  return compute(function, 0, inputs, outputs);
}

/* Several convolutions; what one hands to the next stays here. */
int npu_region(const qdialect_external *function, const void *const *inputs, void *const *outputs) {
  if (function->abi_version != QDIALECT_EXTERNAL_ABI_VERSION) return UNSUPPORTED;
  uint32_t last = function->operation_count - 1;
  void **results = calloc(function->operation_count, sizeof *results);
  int error = results ? 0 : NO_MEMORY;
  for (uint32_t i = 0; i <= last && !error; ++i) {
    results[i] = i == last ? outputs[0] : malloc(qdialect_operation_of(function, i)->result.size);
    error = results[i] ? compute(function, i, inputs, results) : NO_MEMORY;
  }
  for (uint32_t i = 0; results && i < last; ++i) free(results[i]);
  free(results);
  return error;
}
