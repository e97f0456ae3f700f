// RUN: %qopt %s --compile-to=vector --target=avx512vnni --mattr=tune=znver4 | sed 's/qnn.target = "[^"]*"//' > %t.vnni
// RUN: %qopt %s --compile-to=vector --target=avx512vbmi | sed 's/qnn.target = "[^"]*"//' > %t.vbmi
// RUN: diff %t.vnni %t.vbmi
// RUN: filecheck %s --input-file %t.vnni

// Up to vector code a target is no more than the size of its registers and its core: two with the same have the same code.

// CHECK: vector.contract
// CHECK: vector.gather
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
