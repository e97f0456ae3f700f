// A convolution keeps both scales and every zero point, and becomes an accumulation and a requantization; R15 (tflite):
// the rounding of the reference kernels is on the op.
// RUN: %python %S/Inputs/seeded.py %t.tflite
// RUN: %qimport %t.tflite | filecheck %s
// RUN: %qimport %t.tflite -o %t.mlir
// RUN: %qimport %t.tflite | diff - %t.mlir

// CHECK: func.func public @main(%arg0: tensor<1x32x32x3xui8> {qnn.name = "input", qnn.scale = 7.812500e-03 : f64, qnn.zero_point = 128 : i64})
// CHECK-SAME: -> (tensor<1x1001xui8> {qnn.name = "Softmax", qnn.scale = 3.906250e-03 : f64, qnn.zero_point = 0 : i64})
// CHECK: "qnn.conv2d"
// CHECK-SAME: input_scale = 7.812500e-03 : f64, input_zero_point = 128 : i64, padding = array<i64: 0, 0, 1, 1>, strides = array<i64: 2, 2>
// CHECK-SAME: weight_zero_points = array<i64: 128>
// CHECK-SAME: (tensor<1x32x32x3xui8>, tensor<8x3x3x3xui8>, tensor<8xi32>) -> tensor<1x16x16x8xi32>
// CHECK-NEXT: "qnn.requantize"
// CHECK-SAME: axis = 3 : i64
// CHECK-SAME: multiplier = "f32_product"
// CHECK-SAME: qnn.tensor = 3 : i64, rounding = "fixed32_double"
// CHECK: "qnn.conv2d"
// CHECK-SAME: groups = 8 : i64
// CHECK-SAME: (tensor<1x16x16x8xui8>, tensor<8x3x3x1xui8>, tensor<8xi32>) -> tensor<1x16x16x8xi32>
// CHECK: "qnn.avg_pool2d"
// CHECK: "qnn.reshape"
// CHECK: "qnn.softmax"
// CHECK-SAME: arithmetic = "tflite_fixed"
