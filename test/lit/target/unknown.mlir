// RUN: not %qopt %s --compile-to=llvm --target=avx10 2>&1 | filecheck %s

// CHECK: error: target must be one of host, generic, avx512vnni, avx512vbmi, avx512bf16, amxint8, avx512bw, avxvnniint8,
// CHECK-SAME: avxvnni, avx2, sse4.1, x86-64
// CHECK-SAME: or a CPU that --print-targets lists, but got 'avx10', did you mean 'avx2'?
// CHECK-NOT: Traceback
func.func @main(%x: tensor<1x1x4x8xui8>) -> tensor<1x1x4x64xui8> {
  %w = "qnn.constant"() {value = dense<3> : tensor<64x1x1x8xi8>} : () -> tensor<64x1x1x8xi8>
  %0 = "qnn.conv2d"(%x, %w) {
    input_scale = 0.5 : f64, input_zero_point = 7 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>,
    dilation = array<i64: 1, 1>, groups = 1 : i64
  } : (tensor<1x1x4x8xui8>, tensor<64x1x1x8xi8>) -> tensor<1x1x4x64xi32>
  %1 = "qnn.requantize"(%0) {
    input_scale = 0.5 : f64, weight_scales = array<f64: 0.25>, input_zero_points = array<i64: 0>,
    output_scale = 2.0 : f64, output_zero_point = 3 : i64, axis = 3 : i64, rounding = "fixed64_up", multiplier = "f64"
  } : (tensor<1x1x4x64xi32>) -> tensor<1x1x4x64xui8>
  %2 = "qnn.sigmoid"(%1) {
    input_scale = 2.0 : f64, input_zero_point = 3 : i64, output_scale = 0.00390625 : f64, output_zero_point = 0 : i64,
    entries = "half_away_divide", nan = "max"
  } : (tensor<1x1x4x64xui8>) -> tensor<1x1x4x64xui8>
  return %2 : tensor<1x1x4x64xui8>
}
