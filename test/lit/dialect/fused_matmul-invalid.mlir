// RUN: %qopt %s --split-input-file --verify-diagnostics

// What all fused ops share is tested in fused-invalid.mlir, the stages in stages/.

func.func @fused_matmul_c1(%data: tensor<4xui8>, %weight: tensor<4x3xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_matmul' op data must have at least 2 dimensions, but got 1}}
  %y = "qnn.fused_matmul"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    epilogue = [{requantize = {rounding = "fixed64_up"}}]
  } : (tensor<4xui8>, tensor<4x3xi8>, tensor<3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @fused_matmul_c1_weight(%data: tensor<2x4xui8>, %weight: tensor<4xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_matmul' op weight must have at least 2 dimensions, but got 1}}
  %y = "qnn.fused_matmul"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    epilogue = [{requantize = {rounding = "fixed64_up"}}]
  } : (tensor<2x4xui8>, tensor<4xi8>, tensor<3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @fused_matmul_c2(%data: tensor<2x4xui8>, %weight: tensor<5x3xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_matmul' op weight depth must be 4, but got 5}}
  %y = "qnn.fused_matmul"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    epilogue = [{requantize = {rounding = "fixed64_up"}}]
  } : (tensor<2x4xui8>, tensor<5x3xi8>, tensor<3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @fused_matmul_c3(%data: tensor<2x2x4xui8>, %weight: tensor<3x4x3xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_matmul' op leading dimensions must broadcast, but got [2] and [3]}}
  %y = "qnn.fused_matmul"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    epilogue = [{requantize = {rounding = "fixed64_up"}}]
  } : (tensor<2x2x4xui8>, tensor<3x4x3xi8>, tensor<3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @fused_matmul_c4(%data: tensor<2x4xui8>, %weight: tensor<4x3xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_matmul' op weight_scales must have 1 or 3 entries, but got 2}}
  %y = "qnn.fused_matmul"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 1.0, 1.0>,
    output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    epilogue = [{requantize = {rounding = "fixed64_up"}}]
  } : (tensor<2x4xui8>, tensor<4x3xi8>, tensor<3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @fused_matmul_c4_zero_points(%data: tensor<2x4xui8>, %weight: tensor<4x3xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_matmul' op weight_zero_points must have 1 or 3 entries, but got 2}}
  %y = "qnn.fused_matmul"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0, 0>, output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    epilogue = [{requantize = {rounding = "fixed64_up"}}]
  } : (tensor<2x4xui8>, tensor<4x3xi8>, tensor<3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @fused_matmul_c4_no_zero_points(%data: tensor<2x4xui8>, %weight: tensor<4x3xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_matmul' op weight_zero_points must have 1 or 3 entries, but got 0}}
  %y = "qnn.fused_matmul"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64>, output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    epilogue = [{requantize = {rounding = "fixed64_up"}}]
  } : (tensor<2x4xui8>, tensor<4x3xi8>, tensor<3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @fused_matmul_c5(%data: tensor<2x4xui8>, %weight: tensor<4x3xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_matmul' op input_zero_point must be in [0, 255], but got -1}}
  %y = "qnn.fused_matmul"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = -1 : i64, weight_scales = array<f64: 0.25>, output_scale = 0.25 : f64,
    output_zero_point = 5 : i64,
    epilogue = [{requantize = {rounding = "fixed64_up"}}]
  } : (tensor<2x4xui8>, tensor<4x3xi8>, tensor<3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @fused_matmul_c5_weight(%data: tensor<2x4xui8>, %weight: tensor<4x3xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_matmul' op weight_zero_points must be in [-128, 127], but got 128}}
  %y = "qnn.fused_matmul"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0, 0, 128>, output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    epilogue = [{requantize = {rounding = "fixed64_up"}}]
  } : (tensor<2x4xui8>, tensor<4x3xi8>, tensor<3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @fused_matmul_c5_unsigned_weight(%data: tensor<2x4xui8>, %weight: tensor<4x3xui8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_matmul' op weight_zero_points must be in [0, 255], but got -1}}
  %y = "qnn.fused_matmul"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: -1>, output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    epilogue = [{requantize = {rounding = "fixed64_up"}}]
  } : (tensor<2x4xui8>, tensor<4x3xui8>, tensor<3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @fused_matmul_c6(%data: tensor<2x4xui8>, %weight: tensor<4x3xi8>, %bias: tensor<4xi32>) {
  // expected-error @+1 {{'qnn.fused_matmul' op bias must have 3 entries, but got 4}}
  %y = "qnn.fused_matmul"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    epilogue = [{requantize = {rounding = "fixed64_up"}}]
  } : (tensor<2x4xui8>, tensor<4x3xi8>, tensor<4xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @fused_matmul_bias_rank(%data: tensor<2x4xui8>, %weight: tensor<4x3xi8>, %bias: tensor<1x3xi32>) {
  // expected-error @+1 {{'qnn.fused_matmul' op operand 'bias' must be a 1-d non-empty static tensor of i32 or f32, but got tensor<1x3xi32>}}
  %y = "qnn.fused_matmul"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    epilogue = [{requantize = {rounding = "fixed64_up"}}]
  } : (tensor<2x4xui8>, tensor<4x3xi8>, tensor<1x3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @fused_matmul_bias_type(%data: tensor<2x4xui8>, %weight: tensor<4x3xi8>, %bias: tensor<3xi64>) {
  // expected-error @+1 {{'qnn.fused_matmul' op operand 'bias' must be a 1-d non-empty static tensor of i32 or f32, but got tensor<3xi64>}}
  %y = "qnn.fused_matmul"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    epilogue = [{requantize = {rounding = "fixed64_up"}}]
  } : (tensor<2x4xui8>, tensor<4x3xi8>, tensor<3xi64>) -> tensor<2x3xi8>
  return
}

// -----

func.func @fused_matmul_r6_wide_result(%data: tensor<2x4xui8>, %weight: tensor<4x3xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_matmul' op result 'output' must be a non-empty static tensor of i8 or ui8, but got tensor<2x3xi32>}}
  %y = "qnn.fused_matmul"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    epilogue = [{requantize = {rounding = "fixed64_up"}}]
  } : (tensor<2x4xui8>, tensor<4x3xi8>, tensor<3xi32>) -> tensor<2x3xi32>
  return
}

// -----

func.func @fused_matmul_r6_wide_data(%data: tensor<2x4xi16>, %weight: tensor<4x3xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_matmul' op operand 'data' must be a non-empty static tensor of i8 or ui8, but got tensor<2x4xi16>}}
  %y = "qnn.fused_matmul"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    epilogue = [{requantize = {rounding = "fixed64_up"}}]
  } : (tensor<2x4xi16>, tensor<4x3xi8>, tensor<3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @fused_matmul_r6_wide_residual(%data: tensor<2x4xui8>, %weight: tensor<4x3xi8>, %bias: tensor<3xi32>, %residual: tensor<2x3xi32>) {
  // expected-error @+1 {{'qnn.fused_matmul' op operand 'residual' must be a non-empty static tensor of i8 or ui8, but got tensor<2x3xi32>}}
  %y = "qnn.fused_matmul"(%data, %weight, %bias, %residual) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>, output_scale = 0.5 : f64,
    output_zero_point = 1 : i64,
    epilogue = [{requantize = {rounding = "fixed64_up", scale = 0.25 : f64, zero_point = 5 : i64}},
      {add = {residual_scale = 0.125 : f64, residual_zero_point = -7 : i64}},
      {clamp = {min = 1 : i64, max = 100 : i64}}]
  } : (tensor<2x4xui8>, tensor<4x3xi8>, tensor<3xi32>, tensor<2x3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @fused_matmul_result_shape(%data: tensor<2x4xui8>, %weight: tensor<4x3xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_matmul' op result shape must be 2x3, but got 2x4}}
  %y = "qnn.fused_matmul"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    epilogue = [{requantize = {rounding = "fixed64_up"}}]
  } : (tensor<2x4xui8>, tensor<4x3xi8>, tensor<3xi32>) -> tensor<2x4xi8>
  return
}
