// RUN: %qopt %s --compile-to=x86 --target=avx512vbmi | filecheck %s

// Rows of two vectors share 64 bytes with the adjacent row: six vectors are packed as four and two, and stored by row.

// CHECK-LABEL: func.func private @kernel_0(
// CHECK: "llvm.x86.avx512.packuswb.512"
// CHECK: %[[QUANTIZED:.*]] = vector.bitcast %{{.*}} : vector<16xi32> to vector<64xi8>
// CHECK: %[[FIRST:.*]] = vector.shuffle %[[QUANTIZED]], %[[QUANTIZED]] [0, 1, {{.*}}, 31]
// CHECK: vector.store %[[FIRST]], %{{.*}}, vector<32xi8>
// CHECK: %[[SECOND:.*]] = vector.shuffle %[[QUANTIZED]], %[[QUANTIZED]] [32, 33, {{.*}}, 63]
// CHECK: vector.store %[[SECOND]], %{{.*}}, vector<32xi8>
// CHECK: "llvm.x86.avx512.packuswb.512"
// CHECK: vector.store %{{.*}}, vector<32xi8>
// CHECK-NOT: vector.store
// CHECK-NOT: vector.transfer_write
// CHECK-LABEL: func.func @main(
func.func @main(%x: tensor<1x1x3x8xui8>) -> tensor<1x1x3x32xui8> {
  %w = "qnn.constant"() {value = dense<3> : tensor<32x1x1x8xi8>} : () -> tensor<32x1x1x8xi8>
  %0 = "qnn.conv2d"(%x, %w) {
    input_scale = 0.5 : f64, input_zero_point = 7 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>,
    dilation = array<i64: 1, 1>, groups = 1 : i64
  } : (tensor<1x1x3x8xui8>, tensor<32x1x1x8xi8>) -> tensor<1x1x3x32xi32>
  %1 = "qnn.requantize"(%0) {
    input_scale = 0.5 : f64, weight_scales = array<f64: 0.25>, input_zero_points = array<i64: 0>,
    output_scale = 2.0 : f64, output_zero_point = 3 : i64, axis = 3 : i64, rounding = "fixed64_up", multiplier = "f64"
  } : (tensor<1x1x3x32xi32>) -> tensor<1x1x3x32xui8>
  return %1 : tensor<1x1x3x32xui8>
}
