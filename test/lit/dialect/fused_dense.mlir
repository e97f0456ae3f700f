// RUN: %roundtrip

// Stages in every combination: the other fused ops have the same. Covers R11: every scale and zero point is on the op.

// CHECK-LABEL: func.func @requantize_only(
// CHECK: "qnn.fused_dense"(%arg0, %arg1, %arg2) {epilogue = [{requantize = {rounding = "fixed64_up"}}],
// CHECK-SAME: input_scale = 5.000000e-01 : f64, input_zero_point = 128 : i64, output_scale = 2.500000e-01 : f64,
// CHECK-SAME: output_zero_point = 5 : i64, weight_scales = array<f64: 2.500000e-01>} : (tensor<2x4xui8>,
// CHECK-SAME: tensor<3x4xi8>, tensor<3xi32>) -> tensor<2x3xi8>
func.func @requantize_only(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>) -> tensor<2x3xi8> {
  %y = "qnn.fused_dense"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    epilogue = [{requantize = {rounding = "fixed64_up"}}]
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3xi32>) -> tensor<2x3xi8>
  return %y : tensor<2x3xi8>
}

// CHECK-LABEL: func.func @clamped(
func.func @clamped(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>) -> tensor<2x3xi8> {
  %y = "qnn.fused_dense"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    epilogue = [{requantize = {rounding = "fixed32_double"}}, {clamp = {min = 5 : i64, max = 29 : i64}}]
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3xi32>) -> tensor<2x3xi8>
  return %y : tensor<2x3xi8>
}

// CHECK-LABEL: func.func @table(
func.func @table(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>) -> tensor<2x3xi8> {
  %y = "qnn.fused_dense"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    output_scale = 0.0078125 : f64, output_zero_point = -128 : i64,
    epilogue = [{requantize = {rounding = "fixed64_up", scale = 0.25 : f64, zero_point = 5 : i64}},
      {lut = {table = dense<0> : tensor<256xi8>}}]
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3xi32>) -> tensor<2x3xi8>
  return %y : tensor<2x3xi8>
}

// CHECK-LABEL: func.func @table_to_unsigned(
func.func @table_to_unsigned(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>) -> tensor<2x3xui8> {
  %y = "qnn.fused_dense"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    output_scale = 0.0078125 : f64, output_zero_point = 255 : i64,
    epilogue = [{requantize = {rounding = "fixed64_up", scale = 0.25 : f64, zero_point = 5 : i64, element = i8}},
      {lut = {table = dense<0> : tensor<256xi8>}}]
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3xi32>) -> tensor<2x3xui8>
  return %y : tensor<2x3xui8>
}

// CHECK-LABEL: func.func @residual(
func.func @residual(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>, %residual: tensor<2x3xi8>) -> tensor<2x3xi8> {
  %y = "qnn.fused_dense"(%data, %weight, %bias, %residual) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>, output_scale = 0.5 : f64,
    output_zero_point = 1 : i64,
    epilogue = [{requantize = {rounding = "fixed64_up", scale = 0.25 : f64, zero_point = 5 : i64}},
      {add = {residual_scale = 0.125 : f64, residual_zero_point = -7 : i64}},
      {clamp = {min = 1 : i64, max = 100 : i64}}]
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3xi32>, tensor<2x3xi8>) -> tensor<2x3xi8>
  return %y : tensor<2x3xi8>
}

// CHECK-LABEL: func.func @residual_and_table(
func.func @residual_and_table(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>, %residual: tensor<2x3xi8>) -> tensor<2x3xi8> {
  %y = "qnn.fused_dense"(%data, %weight, %bias, %residual) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    output_scale = 0.0078125 : f64, output_zero_point = -128 : i64,
    epilogue = [{requantize = {rounding = "fixed64_up", scale = 0.25 : f64, zero_point = 5 : i64}},
      {add = {residual_scale = 0.125 : f64, residual_zero_point = -7 : i64, arithmetic = "shifted_fixed", rounding = "fixed32_double", scale = 0.5 : f64, zero_point = 1 : i64}},
      {clamp = {min = 1 : i64, max = 100 : i64}},
      {lut = {table = dense<0> : tensor<256xi8>}}]
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3xi32>, tensor<2x3xi8>) -> tensor<2x3xi8>
  return %y : tensor<2x3xi8>
}

// CHECK-LABEL: func.func @unsigned_residual(
func.func @unsigned_residual(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>, %residual: tensor<2x3xui8>) -> tensor<2x3xi8> {
  %y = "qnn.fused_dense"(%data, %weight, %bias, %residual) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>, output_scale = 0.5 : f64,
    output_zero_point = 1 : i64,
    epilogue = [{requantize = {rounding = "fixed64_up", scale = 0.25 : f64, zero_point = 5 : i64}},
      {add = {residual_scale = 0.125 : f64, residual_zero_point = 200 : i64, arithmetic = "float_once", multiplier = "f32"}},
      {clamp = {min = 1 : i64, max = 100 : i64}}]
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3xi32>, tensor<2x3xui8>) -> tensor<2x3xi8>
  return %y : tensor<2x3xi8>
}

// CHECK-LABEL: func.func @per_channel(
// CHECK: "qnn.fused_dense"(%arg0, %arg1, %arg2) {epilogue = [{requantize = {multiplier = "f32",
// CHECK-SAME: rounding = "f32_rne_zp_last"}}], input_scale = 5.000000e-01 : f64, input_zero_point = 128 : i64,
// CHECK-SAME: output_scale = 2.500000e-01 : f64, output_zero_point = 5 : i64,
// CHECK-SAME: weight_scales = array<f64: 5.000000e-01, 2.500000e-01, 1.250000e-01>,
// CHECK-SAME: weight_zero_points = array<i64: 1, -2, 3>} : (tensor<2x4xui8>, tensor<3x4xi8>,
// CHECK-SAME: tensor<3xi32>) -> tensor<2x3xi8>
func.func @per_channel(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>) -> tensor<2x3xi8> {
  %y = "qnn.fused_dense"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.5, 0.25, 0.125>,
    weight_zero_points = array<i64: 1, -2, 3>, output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    epilogue = [{requantize = {rounding = "f32_rne_zp_last", multiplier = "f32"}}]
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3xi32>) -> tensor<2x3xi8>
  return %y : tensor<2x3xi8>
}

// CHECK-LABEL: func.func @unsigned(
func.func @unsigned(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>) -> tensor<2x3xui8> {
  %y = "qnn.fused_dense"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    epilogue = [{requantize = {rounding = "fixed64_up"}}]
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3xi32>) -> tensor<2x3xui8>
  return %y : tensor<2x3xui8>
}

// CHECK-LABEL: func.func @f32_stages(
// CHECK: "qnn.fused_dense"(%arg0, %arg1, %arg2, %arg3) {epilogue = [{dequantize},
// CHECK-SAME: {sum = {residual_scale = 5.000000e-01 : f64, residual_zero_point = 0 : i64}},
// CHECK-SAME: {activation = {alpha = 1.000000e-01 : f64, function = "leaky_relu"}},
// CHECK-SAME: {quantize = {scaling = "reciprocal"}}], input_scale = 5.000000e-01 : f64,
// CHECK-SAME: input_zero_point = 128 : i64, output_scale = 2.500000e-01 : f64, output_zero_point = 5 : i64,
// CHECK-SAME: weight_scales = array<f64: 2.500000e-01>} : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3xf32>,
// CHECK-SAME: tensor<2x3xi8>) -> tensor<2x3xi8>
func.func @f32_stages(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xf32>, %residual: tensor<2x3xi8>) -> tensor<2x3xi8> {
  %y = "qnn.fused_dense"(%data, %weight, %bias, %residual) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    epilogue = [{dequantize},
      {sum = {residual_scale = 0.5 : f64, residual_zero_point = 0 : i64}},
      {activation = {function = "leaky_relu", alpha = 0.1 : f64}},
      {quantize = {scaling = "reciprocal"}}]
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3xf32>, tensor<2x3xi8>) -> tensor<2x3xi8>
  return %y : tensor<2x3xi8>
}

// CHECK-LABEL: func.func @attributes_of_integer_stages(
// CHECK: "qnn.fused_dense"(%arg0, %arg1, %arg2, %arg3) {epilogue = [{requantize = {element = ui8,
// CHECK-SAME: multiplier = "f32", rounding = "fixed64_up", scale = 2.500000e-01 : f64, zero_point = 5 : i64}},
// CHECK-SAME: {add = {arithmetic = "shifted_fixed", element = ui8, multiplier = "f32", residual_is_lhs = true,
// CHECK-SAME: residual_scale = 1.250000e-01 : f64, residual_zero_point = 2 : i64, rounding = "fixed32_double",
// CHECK-SAME: scale = 7.500000e-01 : f64, zero_point = 6 : i64}}, {clamp = {max = 200 : i64, min = 1 : i64}},
// CHECK-SAME: {lut = {table = dense<1> : tensor<256xi8>}}], input_scale = 5.000000e-01 : f64,
// CHECK-SAME: input_zero_point = 128 : i64, output_scale = 5.000000e-01 : f64, output_zero_point = 1 : i64,
// CHECK-SAME: weight_scales = array<f64: 2.500000e-01>} : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3xi32>,
// CHECK-SAME: tensor<2x3xi8>) -> tensor<2x3xi8>
func.func @attributes_of_integer_stages(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>, %residual: tensor<2x3xi8>) -> tensor<2x3xi8> {
  %y = "qnn.fused_dense"(%data, %weight, %bias, %residual) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    output_scale = 0.5 : f64, output_zero_point = 1 : i64,
    epilogue = [{requantize = {rounding = "fixed64_up", multiplier = "f32", scale = 0.25 : f64, zero_point = 5 : i64, element = ui8}},
      {add = {residual_scale = 0.125 : f64, residual_zero_point = 2 : i64, residual_is_lhs = true, arithmetic = "shifted_fixed", rounding = "fixed32_double", multiplier = "f32", scale = 0.75 : f64, zero_point = 6 : i64, element = ui8}},
      {clamp = {min = 1 : i64, max = 200 : i64}}, {lut = {table = dense<1> : tensor<256xi8>}}]
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3xi32>, tensor<2x3xi8>) -> tensor<2x3xi8>
  return %y : tensor<2x3xi8>
}

// CHECK-LABEL: func.func @attributes_of_f32_stages(
// CHECK: "qnn.fused_dense"(%arg0, %arg1, %arg2, %arg3) {epilogue = [{dequantize = {multiplier = "f32"}},
// CHECK-SAME: {activation = {function = "tanh"}}, {sum = {residual_scale = 1.250000e-01 : f64,
// CHECK-SAME: residual_zero_point = 2 : i64}}, {activation = {alpha = 1.000000e-01 : f64,
// CHECK-SAME: function = "leaky_relu"}}, {quantize = {rounding = "f32_rne_zp_first", scaling = "reciprocal"}}],
// CHECK-SAME: input_scale = 5.000000e-01 : f64, input_zero_point = 128 : i64, output_scale = 5.000000e-01 : f64,
// CHECK-SAME: output_zero_point = 1 : i64, weight_scales = array<f64: 2.500000e-01>} : (tensor<2x4xui8>,
// CHECK-SAME: tensor<3x4xi8>, tensor<3xf32>, tensor<2x3xi8>) -> tensor<2x3xi8>
func.func @attributes_of_f32_stages(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xf32>, %residual: tensor<2x3xi8>) -> tensor<2x3xi8> {
  %y = "qnn.fused_dense"(%data, %weight, %bias, %residual) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    output_scale = 0.5 : f64, output_zero_point = 1 : i64,
    epilogue = [{dequantize = {multiplier = "f32"}}, {activation = {function = "tanh"}},
      {sum = {residual_scale = 0.125 : f64, residual_zero_point = 2 : i64}},
      {activation = {function = "leaky_relu", alpha = 0.1 : f64}},
      {quantize = {rounding = "f32_rne_zp_first", scaling = "reciprocal"}}]
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3xf32>, tensor<2x3xi8>) -> tensor<2x3xi8>
  return %y : tensor<2x3xi8>
}
