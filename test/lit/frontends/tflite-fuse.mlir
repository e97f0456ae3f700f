// One op for each kernel.
// RUN: %python %S/Inputs/seeded.py %t.tflite
// RUN: %qimport %t.tflite --fuse > %t.mlir
// RUN: filecheck %s --input-file %t.mlir
// RUN: not grep -E '"qnn.(conv2d|requantize)"' %t.mlir

// CHECK-COUNT-28: "qnn.fused_conv2d"
// CHECK: "qnn.softmax"
