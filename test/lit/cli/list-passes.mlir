// RUN: %qopt --list-passes | filecheck %s
// RUN: %qopt --version | filecheck %s --check-prefix=VERSION
// RUN: %qopt --help | filecheck %s --check-prefix=HELP
// RUN: %qopt -h | filecheck %s --check-prefix=HELP

// CHECK: fuse-qnn{leaky-relu=keep} {{ *}}Turn a quantized graph into one fused op for each kernel.
// CHECK: qnn-canonicalize {{ *}}Remove ops that do nothing
// VERSION: qdialect {{.*}}, MLIR of torch-mlir {{[0-9]+}}
// HELP: usage: qdialect-opt
// HELP: --pass-pipeline
// HELP: examples:
