// Every op is located at its node.
// RUN: %python %S/Inputs/seeded.py %t.tflite
// RUN: %qimport %t.tflite --mlir-print-debuginfo | filecheck %s

// CHECK: [[FILE:#loc[0-9]*]] = loc("tflite-locations.mlir.tmp.tflite":0:0)
// CHECK: "qnn.conv2d"{{.*}} loc([[FIRST:#loc[0-9]+]])
// CHECK: [[FIRST]] = loc("Conv2d_0"([[FILE]]))
