/* Runs a compiled network on files of raw numbers.

     qdialect-compile model.tflite -o model.so
     cc -std=c11 -O2 -I. run_model.c ./model.so -Wl,-rpath,. -o run_model
     ./run_model input0.bin ... output0.bin ...

   It allocates the arrays once; the network itself allocates nothing. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "model.h"

enum { ARRAYS = MODEL_INPUT_COUNT + MODEL_OUTPUT_COUNT };

/* Large networks need more than a stack has. A caller for each thread needs a workspace for each. */
static _Alignas(QDIALECT_WORKSPACE_ALIGNMENT) unsigned char workspace[MODEL_WORKSPACE_SIZE];

static void describe(const char *kind, const qdialect_network *network, const qdialect_tensor *tensor) {
  const int64_t *shape = qdialect_shape(network, tensor);
  printf("%s '%s': %" PRIu64 " bytes, shape", kind, qdialect_name(network, tensor), tensor->size);
  for (uint32_t axis = 0; axis < tensor->rank; ++axis) printf(" %" PRId64, shape[axis]);
  if (tensor->quantization & QDIALECT_HAS_SCALE) printf(", scale %g", tensor->scale);
  if (tensor->quantization & QDIALECT_HAS_ZERO_POINT) printf(", zero point %" PRId64, tensor->zero_point);
  printf("\n");
}

static int transfer(const char *path, const char *mode, void *array, size_t size) {
  FILE *file = fopen(path, mode);
  if (!file) return 0;
  size_t done = mode[0] == 'r' ? fread(array, 1, size, file) : fwrite(array, 1, size, file);
  return (fclose(file) == 0) & (done == size);
}

int main(int count, char **arguments) {
  const qdialect_network *network = model_network();
  const void *inputs[MODEL_INPUT_COUNT + 1] = {0};
  void *outputs[MODEL_OUTPUT_COUNT + 1] = {0};
  void *arrays[ARRAYS];
  int status = EXIT_FAILURE;

  if (count != 1 + ARRAYS) {
    fprintf(stderr, "usage: %s with %d files of inputs and %d of outputs\n", arguments[0], MODEL_INPUT_COUNT,
            MODEL_OUTPUT_COUNT);
    return EXIT_FAILURE;
  }
  for (size_t i = 0; i < ARRAYS; ++i) {
    int is_input = i < MODEL_INPUT_COUNT;
    const qdialect_tensor *tensor =
        is_input ? qdialect_input(network, i) : qdialect_output(network, i - MODEL_INPUT_COUNT);
    describe(is_input ? "input" : "output", network, tensor);
    arrays[i] = malloc(tensor->size);
    if (!arrays[i] || (is_input && !transfer(arguments[1 + i], "rb", arrays[i], tensor->size))) {
      fprintf(stderr, "cannot read '%s'\n", arguments[1 + i]);
      return EXIT_FAILURE;
    }
    if (is_input) {
      inputs[i] = arrays[i];
    } else {
      outputs[i - MODEL_INPUT_COUNT] = arrays[i];
    }
  }

  int error = model_run(inputs, outputs, workspace);
  if (error == QDIALECT_OK) {
    status = EXIT_SUCCESS;
    for (size_t i = MODEL_INPUT_COUNT; i < ARRAYS; ++i) {
      size_t size = qdialect_output(network, i - MODEL_INPUT_COUNT)->size;
      if (!transfer(arguments[1 + i], "wb", arrays[i], size)) status = EXIT_FAILURE;
    }
    printf("version %d computed it\n", (int)model_version());
  } else {
    fprintf(stderr, "%s\n", model_strerror(error));
  }
  for (size_t i = 0; i < ARRAYS; ++i) free(arrays[i]);
  return status;
}
