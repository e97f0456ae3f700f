"""docs/testing.md: what proves that results are right, and how much of it was run."""

from tools.evidence import campaign_counts

TEXT = """\
# Testing

`make test` runs everything that CI checks: types, style, names, generated pages, lit and pytest. This page is about
what looks for faults that no test names.

## Evidence

`make evidence` compiles models of single operators and compares each with its framework: the node cases of the package
`onnx` with ONNX Runtime, the samples of PyTorch's operator tests (`op_db`) with eager PyTorch, recorded quantized
operators with the recorded results of LiteRT and ONNX Runtime. Each is compiled for the CPU that runs it, and in one
more way: for another kind of CPU, for two threads, or saved and loaded. [evidence/](evidence/) keeps the outcome, a row
for each model, and [operators.md](operators.md) shows it as tables. `make test` measures a sample of the rows again,
`.ci/slow` all of them; a row that became worse fails.

```text
make evidence                                       # all rows, about an hour on one core
make evidence EVIDENCE_ARGS="onnx --operator Clip"  # the rows of an operator
make evidence EVIDENCE_ARGS=--check                 # write nothing, fail where a row became worse
```

## Campaigns

A campaign draws its cases from seeds, each in a process of its own with a limit of time. The model of a seed that ends
in a fault is kept in `build/campaigns`.

- **graphs**: ONNX networks of convolutions, products, pools, normalizations and movements, in f32 or with quantized
  values between the nodes, of two to four dimensions, with open and with empty batches; compiled for two kinds of CPU
  and one to three threads, and compared with ONNX Runtime with and without its optimizer. Half of the seeds from 2,200
  on have all types, conversions, comparisons, computed indices and shapes, and quantized operators too, a quarter of
  these NaN, infinities and the smallest numbers.
- **operators**: the same with as many nodes of a table of operators, of the newest operator set: attention with caches
  and masks, recurrent layers, pools, resizing and sampling, products of weights of few bits, ONNX Runtime's own
  operators, Loop and Scan.
- **tflite**: TFLite networks of all types and of conversions between them, with the ends of integers, NaN, infinities
  and subnormal floats, indices that the file has or the caller gives, empty tensors and scalars, compared with the
  reference kernels of LiteRT or its XNNPACK delegate.
- **torch**: PyTorch networks that PT2E quantizes by torchao's quantizers, before or during training, or `quantize_`;
  most with scales that are powers of two, so that many numbers lie between two quantized values.
- **programs**: PyTorch programs of all types, not quantized: indices, sorts, comparisons and scatters, numbers with
  NaN, infinities, -0 and subnormals among them, open extents that the call changes, and buffers that each call writes.
- **values**: PyTorch's samples of its operators, exported as they are, then called with other numbers: zeros, equal
  ones, halves, NaN, infinities, the ends of integers, other indices.
- **models**: such graphs as ONNX Runtime's static and dynamic quantizers make of them.
- **files**: files of every format with bits flipped, parts removed or repeated: each ends in an error of the project,
  or runs.

`make fuzz-graphs N=20000` runs the next 20,000 seeds, `fuzz-models` and the others likewise. What was run so far:

"""
END = """
## A smaller model

`qdialect-reduce model.onnx --test ./is_wrong.sh -o small.onnx` makes a `.mlir` or `.onnx` file smaller while a command
exits with 0 for it, in the manner of `mlir-reduce` and `llvm-reduce`.
"""


def page() -> str:
    """The text of the page."""
    return "\n".join([TEXT.rstrip(), "", *campaign_counts.table(), END.rstrip(), ""])
