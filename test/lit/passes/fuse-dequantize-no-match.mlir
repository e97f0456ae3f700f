// RUN: %qopt %s --qnn-fuse-dequantize --explain-matches --verify-diagnostics

func.func @integer_bias(%data: tensor<3x2xui8>) -> tensor<3x2xf32> {
  %w = "qnn.constant"() {value = dense<1> : tensor<2x2xi8>} : () -> tensor<2x2xi8>
  %b = "qnn.constant"() {value = dense<5> : tensor<2xi32>} : () -> tensor<2xi32>
  %acc = "qnn.dense"(%data, %w, %b) {
    input_scale = 1.0 : f64, input_zero_point = 0 : i64, weight_scales = array<f64: 1.0>
  } : (tensor<3x2xui8>, tensor<2x2xi8>, tensor<2xi32>) -> tensor<3x2xi32>
  // expected-remark @+1 {{[fuse-dequantize] 'qnn.dequantize' must dequantize accumulators without bias}}
  %y = "qnn.dequantize"(%acc) {scales = array<f64: 1.0>, zero_points = array<i64: 0>} : (tensor<3x2xi32>) -> tensor<3x2xf32>
  return %y : tensor<3x2xf32>
}

func.func @zero_point(%data: tensor<3x2xui8>) -> tensor<3x2xf32> {
  %w = "qnn.constant"() {value = dense<1> : tensor<2x2xi8>} : () -> tensor<2x2xi8>
  %acc = "qnn.dense"(%data, %w) {
    input_scale = 1.0 : f64, input_zero_point = 0 : i64, weight_scales = array<f64: 1.0>
  } : (tensor<3x2xui8>, tensor<2x2xi8>) -> tensor<3x2xi32>
  // expected-remark @+1 {{[fuse-dequantize] 'qnn.dequantize' must dequantize with zero point 0, by one scale or by those of the channels}}
  %y = "qnn.dequantize"(%acc) {scales = array<f64: 1.0>, zero_points = array<i64: 4>} : (tensor<3x2xi32>) -> tensor<3x2xf32>
  return %y : tensor<3x2xf32>
}

func.func @scales_of_rows(%data: tensor<2x2xui8>) -> tensor<2x2xf32> {
  %w = "qnn.constant"() {value = dense<1> : tensor<2x2xi8>} : () -> tensor<2x2xi8>
  %acc = "qnn.dense"(%data, %w) {
    input_scale = 1.0 : f64, input_zero_point = 0 : i64, weight_scales = array<f64: 1.0>
  } : (tensor<2x2xui8>, tensor<2x2xi8>) -> tensor<2x2xi32>
  // expected-remark @+1 {{[fuse-dequantize] 'qnn.dequantize' must dequantize with zero point 0, by one scale or by those of the channels}}
  %y = "qnn.dequantize"(%acc) {axis = 0 : i64, scales = array<f64: 1.0, 2.0>, zero_points = array<i64: 0>}
    : (tensor<2x2xi32>) -> tensor<2x2xf32>
  return %y : tensor<2x2xf32>
}

func.func @read_twice(%data: tensor<3x2xui8>) -> (tensor<3x2xf32>, tensor<3x2xi32>) {
  %w = "qnn.constant"() {value = dense<1> : tensor<2x2xi8>} : () -> tensor<2x2xi8>
  %acc = "qnn.dense"(%data, %w) {
    input_scale = 1.0 : f64, input_zero_point = 0 : i64, weight_scales = array<f64: 1.0>
  } : (tensor<3x2xui8>, tensor<2x2xi8>) -> tensor<3x2xi32>
  // expected-remark @+1 {{[fuse-dequantize] 'qnn.dequantize' needs the result of 'qnn.dense' alone, but it has 2 uses}}
  %y = "qnn.dequantize"(%acc) {scales = array<f64: 1.0>, zero_points = array<i64: 0>} : (tensor<3x2xi32>) -> tensor<3x2xf32>
  return %y, %acc : tensor<3x2xf32>, tensor<3x2xi32>
}

func.func @weight_of_an_argument(%data: tensor<3x2xui8>, %w: tensor<2x2xi8>) -> tensor<3x2xf32> {
  %acc = "qnn.dense"(%data, %w) {
    input_scale = 1.0 : f64, input_zero_point = 0 : i64, weight_scales = array<f64: 1.0>
  } : (tensor<3x2xui8>, tensor<2x2xi8>) -> tensor<3x2xi32>
  // expected-remark @+1 {{[fuse-dequantize] 'qnn.dequantize' needs a constant weight}}
  %y = "qnn.dequantize"(%acc) {scales = array<f64: 1.0>, zero_points = array<i64: 0>} : (tensor<3x2xi32>) -> tensor<3x2xf32>
  return %y : tensor<3x2xf32>
}
