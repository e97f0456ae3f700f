// RUN: %qopt %s --qnn-fuse-block-weights | filecheck %s
// RUN: %qopt %s --fuse-qnn | filecheck %s

// CHECK-LABEL: func.func @blocks(
// CHECK-DAG: dense<[{{\[}}1.000000e-01, 2.000000e-01], [3.000000e-01, 4.000000e-01]]> : tensor<2x2xf32>
// CHECK-DAG: dense<187> : tensor<2x16xui8>
// CHECK: "qnn.block_dense"(%arg0, %{{.*}}, %{{.*}}) {bits = 4 : i64, block = 16 : i64} : (tensor<3x32xf32>, tensor<2x16xui8>, tensor<2x2xf32>)
func.func @blocks(%x: tensor<3x32xf32>) -> tensor<3x2xf32> {
  %w = "qnn.constant"() {value = dense<3> : tensor<4x16xi8>} : () -> tensor<4x16xi8>
  %d = "qnn.dequantize"(%w) {scales = array<f64: 0.1, 0.2, 0.3, 0.4>, zero_points = array<i64: 0>} : (tensor<4x16xi8>) -> tensor<4x16xf32>
  %r = "qnn.reshape"(%d) {shape = array<i64: 2, 32>} : (tensor<4x16xf32>) -> tensor<2x32xf32>
  %t = "qnn.transpose"(%r) {permutation = array<i64: 1, 0>} : (tensor<2x32xf32>) -> tensor<32x2xf32>
  %y = "qnn.f32_matmul"(%x, %t) : (tensor<3x32xf32>, tensor<32x2xf32>) -> tensor<3x2xf32>
  return %y : tensor<3x2xf32>
}

// Channels of unsigned weights with zero points of their own; a block is all of the depth, which is no multiple of 16.
// CHECK-LABEL: func.func @channels(
// CHECK: {bits = 8 : i64, block = 9 : i64} : (tensor<3x9xf32>, tensor<2x9xui8>, tensor<2x1xf32>, tensor<2x1xui8>)
func.func @channels(%x: tensor<3x9xf32>) -> tensor<3x2xf32> {
  %w = "qnn.constant"() {value = dense<200> : tensor<9x2xui8>} : () -> tensor<9x2xui8>
  %d = "qnn.dequantize"(%w) {axis = 1 : i64, scales = array<f64: 0.1, 0.2>, zero_points = array<i64: 7, 128>} : (tensor<9x2xui8>) -> tensor<9x2xf32>
  %y = "qnn.f32_matmul"(%x, %d) : (tensor<3x9xf32>, tensor<9x2xf32>) -> tensor<3x2xf32>
  return %y : tensor<3x2xf32>
}

// A product that is rounded before it is added stays so.
// CHECK-LABEL: func.func @rounded(
// CHECK: {bits = 4 : i64, block = 9 : i64, rounded_products = true}
func.func @rounded(%x: tensor<3x9xf32>) -> tensor<3x2xf32> {
  %w = "qnn.constant"() {value = dense<-7> : tensor<9x2xi8>} : () -> tensor<9x2xi8>
  %d = "qnn.dequantize"(%w) {scales = array<f64: 0.1>, zero_points = array<i64: 0>} : (tensor<9x2xi8>) -> tensor<9x2xf32>
  %y = "qnn.f32_matmul"(%x, %d) {rounded_products = true} : (tensor<3x9xf32>, tensor<9x2xf32>) -> tensor<3x2xf32>
  return %y : tensor<3x2xf32>
}

// Integers that are converted, and multiplied by scales that repeat.
// CHECK-LABEL: func.func @multiplied(
// CHECK: {bits = 2 : i64, block = 9 : i64} : (tensor<3x9xf32>, tensor<2x3xui8>, tensor<2x1xf32>)
func.func @multiplied(%x: tensor<3x9xf32>) -> tensor<3x2xf32> {
  %w = "qnn.constant"() {value = dense<-2> : tensor<9x2xi8>} : () -> tensor<9x2xi8>
  %s = "qnn.constant"() {value = dense<[0.1, 0.2]> : tensor<2xf32>} : () -> tensor<2xf32>
  %b = "qnn.broadcast"(%s) {shape = array<i64: 9, 2>} : (tensor<2xf32>) -> tensor<9x2xf32>
  %f = arith.sitofp %w : tensor<9x2xi8> to tensor<9x2xf32>
  %d = arith.mulf %f, %b : tensor<9x2xf32>
  %y = "qnn.f32_matmul"(%x, %d) : (tensor<3x9xf32>, tensor<9x2xf32>) -> tensor<3x2xf32>
  return %y : tensor<3x2xf32>
}
