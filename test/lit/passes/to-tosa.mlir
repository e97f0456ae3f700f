// RUN: %qopt %s --qnn-to-tosa | filecheck %s
// RUN: %qopt %s --qnn-to-tosa --qnn-import-tosa | filecheck %s --check-prefix=BACK

// A kernel is taken apart; bytes without a sign are held less 128 between the arguments and results.

// CHECK-LABEL: func.func @main(
// CHECK-SAME: %arg0: tensor<1x5x5x3xui8> {qnn.scale = 5.000000e-01 : f64}
// CHECK: tosa.rescale %arg0, {{.*}} {input_unsigned = true
// CHECK: values = dense<-125> : tensor<1xi8>
// CHECK: tosa.conv2d
// CHECK-SAME: acc_type = i32
// CHECK: tosa.rescale
// CHECK-SAME: per_channel = true, rounding_mode = DOUBLE_ROUND
// CHECK: tosa.clamp
// CHECK: tosa.rescale {{.*}} output_unsigned = true
// CHECK-NOT: qnn.{{[a-z_0-9]+}}"

// BACK: qnn.conv2d
// BACK: qnn.requantize
// BACK-SAME: rounding = "fixed64_double"
func.func @main(%x: tensor<1x5x5x3xui8> {qnn.scale = 0.5 : f64}) -> tensor<1x3x3x2xui8> {
  %w = "qnn.constant"() {value = dense<3> : tensor<2x3x3x3xi8>} : () -> tensor<2x3x3x3xi8>
  %b = "qnn.constant"() {value = dense<[1, 2]> : tensor<2xi32>} : () -> tensor<2xi32>
  %0 = "qnn.fused_conv2d"(%x, %w, %b) {
    input_scale = 0.5 : f64, input_zero_point = 3 : i64, weight_scales = array<f64: 0.1, 0.2>,
    output_scale = 40.0 : f64, output_zero_point = 9 : i64,
    epilogue = [{requantize = {rounding = "fixed64_double"}}, {clamp = {min = 9 : i64, max = 200 : i64}}]
  } : (tensor<1x5x5x3xui8>, tensor<2x3x3x3xi8>, tensor<2xi32>) -> tensor<1x3x3x2xui8>
  return %0 : tensor<1x3x3x2xui8>
}
