// RUN: %qopt %s --qnn-tabulate-unary | filecheck %s

// Covers R2: the entries are bit patterns in the order of the unsigned index.

// CHECK-LABEL: func.func @abs_signed(
// CHECK: "qnn.lut"(%arg0)
// CHECK-SAME: table = dense<"0x000102{{.*}}7E7F7F7F7E{{.*}}0201"> : tensor<256xi8>
func.func @abs_signed(%arg0: tensor<4xi8>) -> tensor<4xi8> {
  %0 = "qnn.abs"(%arg0) {
    entries = "half_away_divide", input_scale = 1.0 : f64, input_zero_point = 0 : i64, nan = "max",
    output_scale = 1.0 : f64, output_zero_point = 0 : i64
  } : (tensor<4xi8>) -> tensor<4xi8>
  return %0 : tensor<4xi8>
}

// CHECK-LABEL: func.func @sigmoid(
// CHECK-NOT: qnn.sigmoid
// CHECK: "qnn.lut"(%arg0) {input_scale = 5.000000e-01 : f64, input_zero_point = 10 : i64, output_scale = 3.906250e-03 : f64, output_zero_point = 0 : i64
func.func @sigmoid(%arg0: tensor<4xui8>) -> tensor<4xui8> {
  %0 = "qnn.sigmoid"(%arg0) {
    entries = "half_away_divide", input_scale = 0.5 : f64, input_zero_point = 10 : i64, nan = "max",
    output_scale = 0.00390625 : f64, output_zero_point = 0 : i64
  } : (tensor<4xui8>) -> tensor<4xui8>
  return %0 : tensor<4xui8>
}

// CHECK-LABEL: func.func @requantize(
// CHECK-NOT: qnn.requantize
// CHECK: "qnn.lut"(%arg0) {input_scale = 5.000000e-01 : f64, input_zero_point = 10 : i64, output_scale = 2.500000e-01 : f64, output_zero_point = 20 : i64
func.func @requantize(%arg0: tensor<4xui8>) -> tensor<4xi8> {
  %0 = "qnn.requantize"(%arg0) {
    axis = 0 : i64, input_scale = 0.5 : f64, input_zero_points = array<i64: 10>, multiplier = "f64",
    output_scale = 0.25 : f64, output_zero_point = 20 : i64, rounding = "fixed64_up",
    weight_scales = array<f64: 1.0>
  } : (tensor<4xui8>) -> tensor<4xi8>
  return %0 : tensor<4xi8>
}

// CHECK-LABEL: func.func @times_a_constant(
// CHECK-NOT: qnn.mul
// CHECK: "qnn.lut"(%arg0)
func.func @times_a_constant(%arg0: tensor<4xui8>) -> tensor<4xui8> {
  %0 = "qnn.constant"() {value = dense<64> : tensor<1xui8>} : () -> tensor<1xui8>
  %1 = "qnn.mul"(%arg0, %0) {
    lhs_scale = 0.5 : f64, lhs_zero_point = 10 : i64, multiplier = "f64", output_max = 255 : i64,
    output_min = 0 : i64, output_scale = 0.5 : f64, output_zero_point = 10 : i64, rhs_scale = 0.00390625 : f64,
    rhs_zero_point = 0 : i64, rounding = "f32_rne_zp_last"
  } : (tensor<4xui8>, tensor<1xui8>) -> tensor<4xui8>
  return %1 : tensor<4xui8>
}

// CHECK-LABEL: func.func @less_a_constant(
// CHECK-NOT: qnn.sub
// CHECK: "qnn.lut"(%arg0)
func.func @less_a_constant(%arg0: tensor<4xui8>) -> tensor<4xui8> {
  %0 = "qnn.constant"() {value = dense<64> : tensor<1xui8>} : () -> tensor<1xui8>
  %1 = "qnn.sub"(%arg0, %0) {
    arithmetic = "shifted_fixed", lhs_scale = 0.5 : f64, lhs_zero_point = 10 : i64, multiplier = "f64",
    output_max = 255 : i64, output_min = 0 : i64, output_scale = 0.5 : f64, output_zero_point = 10 : i64,
    rhs_scale = 0.00390625 : f64, rhs_zero_point = 0 : i64, rounding = "fixed32_double"
  } : (tensor<4xui8>, tensor<1xui8>) -> tensor<4xui8>
  return %1 : tensor<4xui8>
}
