// RUN: %qopt %s --split-input-file --verify-diagnostics

// The rounding of f32 values.

func.func @quantize_c2(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_dense' op epilogue[1] 'quantize' rounding must be one of f32 values, but got fixed64_up}}
  %y = "qnn.fused_dense"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    epilogue = [{dequantize}, {quantize = {rounding = "fixed64_up"}}]
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3xi32>) -> tensor<2x3xi8>
  return
}
