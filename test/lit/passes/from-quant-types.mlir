// RUN: %qopt %s --qnn-from-quant-types | filecheck %s
// RUN: %qopt %s --qnn-from-quant-types --qnn-fuse-block-weights | filecheck %s --check-prefix=PACKED

// Casts become ops, the types of the interface attributes.

// CHECK-LABEL: func.func @casts(
// CHECK-SAME: %arg0: tensor<4x2xf32>) -> (tensor<4x2xui8> {qnn.scale = 5.000000e-01 : f64, qnn.zero_point = 3 : i64})
// CHECK-NEXT: %0 = "qnn.quantize"(%arg0) {axis = 1 : i64, scales = array<f64: 1.000000e-01, 2.000000e-01>
// CHECK-NEXT: %1 = "qnn.clip"(%0) {max = 127 : i64, min = -127 : i64}
// CHECK-NEXT: %2 = "qnn.dequantize"(%1) {axis = 1 : i64, scales = array<f64: 1.000000e-01, 2.000000e-01>, zero_points = array<i64: 3, 0>}
// CHECK-NEXT: %3 = "qnn.quantize"(%2) {scales
// CHECK-SAME: -> tensor<4x2xui8>
// CHECK-NEXT: return %3
func.func @casts(%x: tensor<4x2xf32>) -> tensor<4x2x!quant.uniform<u8:f32, 0.5:3>> {
  %0 = quant.qcast %x : tensor<4x2xf32> to tensor<4x2x!quant.uniform<i8<-127:127>:f32:1, {0.1:3,0.2}>>
  %1 = quant.dcast %0 : tensor<4x2x!quant.uniform<i8<-127:127>:f32:1, {0.1:3,0.2}>> to tensor<4x2xf32>
  %2 = quant.qcast %1 : tensor<4x2xf32> to tensor<4x2x!quant.uniform<u8:f32, 0.5:3>>
  return %2 : tensor<4x2x!quant.uniform<u8:f32, 0.5:3>>
}

// Quantized values that are read as a storage type are the quantized values.

// CHECK-LABEL: func.func @storage(
// CHECK-SAME: %arg0: tensor<4xi8> {qnn.scale = 5.000000e-01 : f64, qnn.zero_point = 0 : i64}) -> tensor<4xi8>
// CHECK-NEXT: %0 = "qnn.clip"(%arg0)
// CHECK-NEXT: return %0
func.func @storage(%x: tensor<4x!quant.uniform<i8:f32, 0.5>>) -> tensor<4xi8> {
  %0 = quant.scast %x : tensor<4x!quant.uniform<i8:f32, 0.5>> to tensor<4xi8>
  %1 = "qnn.clip"(%0) {max = 6 : i64, min = 0 : i64} : (tensor<4xi8>) -> tensor<4xi8>
  %2 = quant.scast %1 : tensor<4xi8> to tensor<4x!quant.uniform<i8:f32, 0.25>>
  %3 = quant.scast %2 : tensor<4x!quant.uniform<i8:f32, 0.25>> to tensor<4xi8>
  return %3 : tensor<4xi8>
}

// Blocks of columns: each is a row of a dequantization, and a block of packed weights.
// CHECK-LABEL: func.func @blocks(
// CHECK: "qnn.transpose"(%{{.*}}) {permutation = array<i64: 0, 2, 1, 3>}
// CHECK: "qnn.dequantize"(%{{.*}}) {scales = array<f64: 5.000000e-01, 2.000000e+00, 2.500000e-01, 4.000000e+00>, zero_points = array<i64: 0, 1, 0, 0>} : (tensor<4x16xi8>)
// PACKED-LABEL: func.func @blocks(
// PACKED: dense<{{\[}}[5.000000e-01, 2.500000e-01], [2.000000e+00, 4.000000e+00]]> : tensor<2x2xf32>
// PACKED: {bits = 4 : i64, block = 16 : i64}
func.func @blocks(%x: tensor<3x32xf32>) -> tensor<3x2xf32> {
  %w = "qnn.constant"() {value = dense<7> : tensor<32x2xi8>} : () -> tensor<32x2xi8>
  %s = quant.scast %w : tensor<32x2xi8> to tensor<32x2x!quant.uniform<i8:f32:{0:16, 1:1}, {{0.5, 2.0:1}, {0.25, 4.0}}>>
  %d = quant.dcast %s : tensor<32x2x!quant.uniform<i8:f32:{0:16, 1:1}, {{0.5, 2.0:1}, {0.25, 4.0}}>> to tensor<32x2xf32>
  %y = "qnn.f32_matmul"(%x, %d) : (tensor<3x32xf32>, tensor<32x2xf32>) -> tensor<3x2xf32>
  return %y : tensor<3x2xf32>
}
