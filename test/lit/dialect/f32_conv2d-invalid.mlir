// RUN: %qopt %s --split-input-file --verify-diagnostics

func.func @f32_conv2d_c1(%data: tensor<1x5x5x4xf32>, %weight: tensor<8x3x3x4xf32>) {
  // expected-error @+1 {{'qnn.f32_conv2d' op strides must be 2 integers of at least 1, but got [0, 1]}}
  %y = "qnn.f32_conv2d"(%data, %weight) {strides = array<i64: 0, 1>, dilation = array<i64: 1, 1>, groups = 1 : i64} : (tensor<1x5x5x4xf32>, tensor<8x3x3x4xf32>) -> tensor<1x3x3x8xf32>
  return
}

// -----

func.func @f32_conv2d_c1_dilation(%data: tensor<1x5x5x4xf32>, %weight: tensor<8x3x3x4xf32>) {
  // expected-error @+1 {{'qnn.f32_conv2d' op dilation must be 2 integers of at least 1, but got [1]}}
  %y = "qnn.f32_conv2d"(%data, %weight) {strides = array<i64: 1, 1>, dilation = array<i64: 1>, groups = 1 : i64} : (tensor<1x5x5x4xf32>, tensor<8x3x3x4xf32>) -> tensor<1x3x3x8xf32>
  return
}

// -----

func.func @f32_conv2d_c2(%data: tensor<1x5x5x4xf32>, %weight: tensor<8x3x3x4xf32>) {
  // expected-error @+1 {{'qnn.f32_conv2d' op groups must divide 4 input and 8 output channels, but got 3}}
  %y = "qnn.f32_conv2d"(%data, %weight) {strides = array<i64: 1, 1>, dilation = array<i64: 1, 1>, groups = 3 : i64} : (tensor<1x5x5x4xf32>, tensor<8x3x3x4xf32>) -> tensor<1x3x3x8xf32>
  return
}

// -----

func.func @f32_conv2d_c2_depth(%data: tensor<1x5x5x4xf32>, %weight: tensor<8x3x3x4xf32>) {
  // expected-error @+1 {{'qnn.f32_conv2d' op weight depth must be 2, but got 4}}
  %y = "qnn.f32_conv2d"(%data, %weight) {strides = array<i64: 1, 1>, dilation = array<i64: 1, 1>, groups = 2 : i64} : (tensor<1x5x5x4xf32>, tensor<8x3x3x4xf32>) -> tensor<1x3x3x8xf32>
  return
}

// -----

func.func @f32_conv2d_c3(%data: tensor<1x5x5x4xf32>, %weight: tensor<8x3x3x4xf32>) {
  // expected-error @+1 {{'qnn.f32_conv2d' op input height must be at least 7 with padding, but got 5}}
  %y = "qnn.f32_conv2d"(%data, %weight) {strides = array<i64: 1, 1>, dilation = array<i64: 3, 1>, groups = 1 : i64} : (tensor<1x5x5x4xf32>, tensor<8x3x3x4xf32>) -> tensor<1x3x3x8xf32>
  return
}

// -----

func.func @f32_conv2d_too_few_operands(%data: tensor<1x5x5x4xf32>) {
  // expected-error @+1 {{'qnn.f32_conv2d' op must have 2 operands, but got 1}}
  %y = "qnn.f32_conv2d"(%data) {strides = array<i64: 1, 1>, dilation = array<i64: 1, 1>, groups = 1 : i64} : (tensor<1x5x5x4xf32>) -> tensor<1x3x3x8xf32>
  return
}

// -----

func.func @f32_conv2d_too_many_operands(%data: tensor<1x5x5x4xf32>, %weight: tensor<8x3x3x4xf32>) {
  // expected-error @+1 {{'qnn.f32_conv2d' op must have 2 operands, but got 3}}
  %y = "qnn.f32_conv2d"(%data, %weight, %data) {strides = array<i64: 1, 1>, dilation = array<i64: 1, 1>, groups = 1 : i64} : (tensor<1x5x5x4xf32>, tensor<8x3x3x4xf32>, tensor<1x5x5x4xf32>) -> tensor<1x3x3x8xf32>
  return
}

// -----

func.func @f32_conv2d_no_result(%data: tensor<1x5x5x4xf32>, %weight: tensor<8x3x3x4xf32>) {
  // expected-error @+1 {{'qnn.f32_conv2d' op must have 1 result, but got 0}}
  "qnn.f32_conv2d"(%data, %weight) {strides = array<i64: 1, 1>, dilation = array<i64: 1, 1>, groups = 1 : i64} : (tensor<1x5x5x4xf32>, tensor<8x3x3x4xf32>) -> ()
  return
}

// -----

func.func @f32_conv2d_unknown_attribute(%data: tensor<1x5x5x4xf32>, %weight: tensor<8x3x3x4xf32>) {
  // expected-error @+1 {{'qnn.f32_conv2d' op has no attribute 'bogus'; it has 'strides', 'dilation', 'groups'}}
  %y = "qnn.f32_conv2d"(%data, %weight) {strides = array<i64: 1, 1>, dilation = array<i64: 1, 1>, groups = 1 : i64, bogus = 1 : i64} : (tensor<1x5x5x4xf32>, tensor<8x3x3x4xf32>) -> tensor<1x3x3x8xf32>
  return
}

// -----

func.func @f32_conv2d_attribute_kind(%data: tensor<1x5x5x4xf32>, %weight: tensor<8x3x3x4xf32>) {
  // expected-error @+1 {{'qnn.f32_conv2d' op strides must be an array<i64>, but got [1, 1]}}
  %y = "qnn.f32_conv2d"(%data, %weight) {strides = [1, 1], dilation = array<i64: 1, 1>, groups = 1 : i64} : (tensor<1x5x5x4xf32>, tensor<8x3x3x4xf32>) -> tensor<1x3x3x8xf32>
  return
}

// -----

func.func @f32_conv2d_rank(%data: tensor<5x5x4xf32>, %weight: tensor<8x3x3x4xf32>) {
  // expected-error @+1 {{'qnn.f32_conv2d' op operand 'data' must be a 4-d non-empty static tensor of f32, but got tensor<5x5x4xf32>}}
  %y = "qnn.f32_conv2d"(%data, %weight) {strides = array<i64: 1, 1>, dilation = array<i64: 1, 1>, groups = 1 : i64} : (tensor<5x5x4xf32>, tensor<8x3x3x4xf32>) -> tensor<1x3x3x8xf32>
  return
}

// -----

func.func @f32_conv2d_element_type(%data: tensor<1x5x5x4xf32>, %weight: tensor<8x3x3x4xi8>) {
  // expected-error @+1 {{'qnn.f32_conv2d' op operand 'weight' must be a 4-d non-empty static tensor of f32, but got tensor<8x3x3x4xi8>}}
  %y = "qnn.f32_conv2d"(%data, %weight) {strides = array<i64: 1, 1>, dilation = array<i64: 1, 1>, groups = 1 : i64} : (tensor<1x5x5x4xf32>, tensor<8x3x3x4xi8>) -> tensor<1x3x3x8xf32>
  return
}

// -----

func.func @f32_conv2d_result_shape(%data: tensor<1x5x5x4xf32>, %weight: tensor<8x3x3x4xf32>) {
  // expected-error @+1 {{'qnn.f32_conv2d' op result shape must be 1x3x3x8, but got 1x5x5x8}}
  %y = "qnn.f32_conv2d"(%data, %weight) {strides = array<i64: 1, 1>, dilation = array<i64: 1, 1>, groups = 1 : i64} : (tensor<1x5x5x4xf32>, tensor<8x3x3x4xf32>) -> tensor<1x5x5x8xf32>
  return
}
