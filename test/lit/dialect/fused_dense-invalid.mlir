// RUN: %qopt %s --split-input-file --verify-diagnostics

// What all fused ops share is tested in fused-invalid.mlir, the stages in stages/.

func.func @fused_dense_c1(%data: tensor<2x4xui8>, %weight: tensor<3x5xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_dense' op weight depth must be 4, but got 5}}
  %y = "qnn.fused_dense"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>, output_scale = 0.25 : f64,
    output_zero_point = 5 : i64, epilogue = [{requantize = {rounding = "fixed64_up"}}]
  } : (tensor<2x4xui8>, tensor<3x5xi8>, tensor<3xi32>) -> tensor<2x3xi8>
  return
}
