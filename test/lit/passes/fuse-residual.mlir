// RUN: %qopt %s --qnn-fuse-residual | filecheck %s

// Covers N6: the addition of another tensor becomes the sum stage of the kernel.
// Covers R12 (residual add).

// CHECK-LABEL: func.func @left(
// CHECK-NOT: qnn.add
// CHECK: "qnn.fused_conv2d"(%arg0, %{{.*}}, %{{.*}}, %arg1)
// CHECK-SAME: epilogue = [{requantize = {rounding = "fixed64_up", scale = 5.000000e-01 : f64, zero_point = 10 : i64}},
// CHECK-SAME: {add = {residual_scale = 2.500000e-01 : f64, residual_zero_point = 4 : i64}}, {clamp = {max = 255 : i64, min = 20 : i64}}]
// CHECK-SAME: output_scale = 1.000000e+00 : f64, output_zero_point = 20 : i64
func.func @left(%arg0: tensor<1x4x4x2xui8>, %arg1: tensor<1x4x4x2xui8>) -> tensor<1x4x4x2xui8> {
  %0 = "qnn.constant"() {value = dense<3> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  %1 = "qnn.constant"() {value = dense<7> : tensor<2xi32>} : () -> tensor<2xi32>
  %2 = "qnn.fused_conv2d"(%arg0, %0, %1) {
    input_scale = 0.25 : f64, input_zero_point = 3 : i64, weight_scales = array<f64: 0.5, 0.25>,
    output_scale = 0.5 : f64, output_zero_point = 10 : i64,
    epilogue = [{requantize = {rounding = "fixed64_up"}}]
  } : (tensor<1x4x4x2xui8>, tensor<2x1x1x2xi8>, tensor<2xi32>) -> tensor<1x4x4x2xui8>
  %3 = "qnn.add"(%2, %arg1) {
    arithmetic = "requantize_each", lhs_scale = 0.5 : f64, lhs_zero_point = 10 : i64, multiplier = "f64",
    output_max = 255 : i64, output_min = 20 : i64, output_scale = 1.0 : f64, output_zero_point = 20 : i64,
    rhs_scale = 0.25 : f64, rhs_zero_point = 4 : i64, rounding = "fixed64_up"
  } : (tensor<1x4x4x2xui8>, tensor<1x4x4x2xui8>) -> tensor<1x4x4x2xui8>
  return %3 : tensor<1x4x4x2xui8>
}

// CHECK-LABEL: func.func @right(
// CHECK-NOT: qnn.add
// CHECK: "qnn.fused_conv2d"(%arg0, %{{.*}}, %{{.*}}, %arg1)
// CHECK-SAME: {add = {arithmetic = "shifted_fixed", residual_is_lhs = true, residual_scale = 2.500000e-01
// CHECK-SAME: rounding = "fixed32_double"
func.func @right(%arg0: tensor<1x4x4x2xui8>, %arg1: tensor<1x4x4x2xui8>) -> tensor<1x4x4x2xui8> {
  %0 = "qnn.constant"() {value = dense<3> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  %1 = "qnn.constant"() {value = dense<7> : tensor<2xi32>} : () -> tensor<2xi32>
  %2 = "qnn.fused_conv2d"(%arg0, %0, %1) {
    input_scale = 0.25 : f64, input_zero_point = 3 : i64, weight_scales = array<f64: 0.5, 0.25>,
    output_scale = 0.5 : f64, output_zero_point = 10 : i64,
    epilogue = [{requantize = {rounding = "fixed64_up"}}]
  } : (tensor<1x4x4x2xui8>, tensor<2x1x1x2xi8>, tensor<2xi32>) -> tensor<1x4x4x2xui8>
  %3 = "qnn.add"(%arg1, %2) {
    arithmetic = "shifted_fixed", lhs_scale = 0.25 : f64, lhs_zero_point = 10 : i64, multiplier = "f64",
    output_max = 255 : i64, output_min = 0 : i64, output_scale = 1.0 : f64, output_zero_point = 20 : i64,
    rhs_scale = 0.5 : f64, rhs_zero_point = 10 : i64, rounding = "fixed32_double"
  } : (tensor<1x4x4x2xui8>, tensor<1x4x4x2xui8>) -> tensor<1x4x4x2xui8>
  return %3 : tensor<1x4x4x2xui8>
}

// CHECK-LABEL: func.func @later_of_two(
// CHECK: [[EARLY:%.*]] = "qnn.fused_conv2d"(%arg0, %{{[0-9a-z_]*}}, %{{[0-9a-z_]*}})
// CHECK: "qnn.fused_conv2d"(%arg1, %{{.*}}, %{{.*}}, [[EARLY]])
// CHECK-NOT: qnn.add
func.func @later_of_two(%arg0: tensor<1x4x4x2xui8>, %arg1: tensor<1x4x4x2xui8>) -> tensor<1x4x4x2xui8> {
  %0 = "qnn.constant"() {value = dense<3> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  %1 = "qnn.constant"() {value = dense<7> : tensor<2xi32>} : () -> tensor<2xi32>
  %2 = "qnn.fused_conv2d"(%arg0, %0, %1) {
    input_scale = 0.25 : f64, input_zero_point = 3 : i64, weight_scales = array<f64: 0.5, 0.25>,
    output_scale = 0.5 : f64, output_zero_point = 10 : i64,
    epilogue = [{requantize = {rounding = "fixed64_up"}}]
  } : (tensor<1x4x4x2xui8>, tensor<2x1x1x2xi8>, tensor<2xi32>) -> tensor<1x4x4x2xui8>
  %3 = "qnn.constant"() {value = dense<3> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  %4 = "qnn.constant"() {value = dense<7> : tensor<2xi32>} : () -> tensor<2xi32>
  %5 = "qnn.fused_conv2d"(%arg1, %3, %4) {
    input_scale = 0.25 : f64, input_zero_point = 3 : i64, weight_scales = array<f64: 0.5, 0.25>,
    output_scale = 0.5 : f64, output_zero_point = 10 : i64,
    epilogue = [{requantize = {rounding = "fixed64_up"}}]
  } : (tensor<1x4x4x2xui8>, tensor<2x1x1x2xi8>, tensor<2xi32>) -> tensor<1x4x4x2xui8>
  %6 = "qnn.add"(%2, %5) {
    arithmetic = "requantize_each", lhs_scale = 0.5 : f64, lhs_zero_point = 10 : i64, multiplier = "f64",
    output_max = 255 : i64, output_min = 0 : i64, output_scale = 1.0 : f64, output_zero_point = 20 : i64,
    rhs_scale = 0.5 : f64, rhs_zero_point = 10 : i64, rounding = "fixed64_up"
  } : (tensor<1x4x4x2xui8>, tensor<1x4x4x2xui8>) -> tensor<1x4x4x2xui8>
  return %6 : tensor<1x4x4x2xui8>
}

// CHECK-LABEL: func.func @order_of_floats(
// CHECK-NOT: qnn.add
// CHECK: "qnn.fused_conv2d"(%arg0, %{{.*}}, %{{.*}}, %arg1)
// CHECK-SAME: {add = {arithmetic = "float_once", residual_is_lhs = true
func.func @order_of_floats(%arg0: tensor<1x4x4x2xui8>, %arg1: tensor<1x4x4x2xui8>) -> tensor<1x4x4x2xui8> {
  %0 = "qnn.constant"() {value = dense<3> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  %1 = "qnn.constant"() {value = dense<7> : tensor<2xi32>} : () -> tensor<2xi32>
  %2 = "qnn.fused_conv2d"(%arg0, %0, %1) {
    input_scale = 0.25 : f64, input_zero_point = 3 : i64, weight_scales = array<f64: 0.5, 0.25>,
    output_scale = 0.5 : f64, output_zero_point = 10 : i64,
    epilogue = [{requantize = {rounding = "fixed64_up"}}]
  } : (tensor<1x4x4x2xui8>, tensor<2x1x1x2xi8>, tensor<2xi32>) -> tensor<1x4x4x2xui8>
  %3 = "qnn.add"(%arg1, %2) {
    arithmetic = "float_once", lhs_scale = 0.5 : f64, lhs_zero_point = 10 : i64, multiplier = "f64",
    output_max = 255 : i64, output_min = 0 : i64, output_scale = 1.0 : f64, output_zero_point = 20 : i64,
    rhs_scale = 0.5 : f64, rhs_zero_point = 10 : i64, rounding = "fixed64_up"
  } : (tensor<1x4x4x2xui8>, tensor<1x4x4x2xui8>) -> tensor<1x4x4x2xui8>
  return %3 : tensor<1x4x4x2xui8>
}
