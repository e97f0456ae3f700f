// RUN: %qopt %s --split-input-file --verify-diagnostics

// The addition of a residual to f32 values.

func.func @sum_c1(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>, %residual: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.fused_dense' op epilogue[1] 'sum' residual_zero_point must be in [-128, 127], but got 128}}
  %y = "qnn.fused_dense"(%data, %weight, %bias, %residual) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    epilogue = [{dequantize}, {sum = {residual_scale = 0.5 : f64, residual_zero_point = 128 : i64}}, {quantize}]
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3xi32>, tensor<2x3xi8>) -> tensor<2x3xi8>
  return
}
