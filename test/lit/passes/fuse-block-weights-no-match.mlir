// RUN: %qopt %s --qnn-fuse-block-weights --explain-matches --verify-diagnostics

func.func @matrices(%x: tensor<1x3x9xf32>) -> tensor<1x3x2xf32> {
  %w = "qnn.constant"() {value = dense<3> : tensor<1x9x2xi8>} : () -> tensor<1x9x2xi8>
  %d = "qnn.dequantize"(%w) {scales = array<f64: 0.1>, zero_points = array<i64: 0>} : (tensor<1x9x2xi8>) -> tensor<1x9x2xf32>
  // expected-remark @+1 {{[fuse-block-weights] 'qnn.f32_matmul' must multiply by one matrix}}
  %y = "qnn.f32_matmul"(%x, %d) : (tensor<1x3x9xf32>, tensor<1x9x2xf32>) -> tensor<1x3x2xf32>
  return %y : tensor<1x3x2xf32>
}

func.func @of_terms(%x: tensor<3x2xf32>) -> tensor<3x2xf32> {
  %w = "qnn.constant"() {value = dense<3> : tensor<2x2xi8>} : () -> tensor<2x2xi8>
  %d = "qnn.dequantize"(%w) {scales = array<f64: 0.1, 0.2>, zero_points = array<i64: 0>} : (tensor<2x2xi8>) -> tensor<2x2xf32>
  // expected-remark @+1 {{[fuse-block-weights] 'qnn.f32_matmul' must have weights of 8 bits at most, in blocks of a multiple of 16, but got blocks of 1}}
  %y = "qnn.f32_matmul"(%x, %d) : (tensor<3x2xf32>, tensor<2x2xf32>) -> tensor<3x2xf32>
  return %y : tensor<3x2xf32>
}

func.func @wide(%x: tensor<3x2xf32>) -> tensor<3x2xf32> {
  %w = "qnn.constant"() {value = dense<300> : tensor<2x2xi16>} : () -> tensor<2x2xi16>
  %d = "qnn.dequantize"(%w) {scales = array<f64: 0.1>, zero_points = array<i64: 0>} : (tensor<2x2xi16>) -> tensor<2x2xf32>
  // expected-remark @+1 {{[fuse-block-weights] 'qnn.f32_matmul' must have weights of 8 bits at most, in blocks of a multiple of 16, but got blocks of 2}}
  %y = "qnn.f32_matmul"(%x, %d) : (tensor<3x2xf32>, tensor<2x2xf32>) -> tensor<3x2xf32>
  return %y : tensor<3x2xf32>
}

// Two roundings of a number are not one.
func.func @scaled_twice(%x: tensor<3x2xf32>) -> tensor<3x2xf32> {
  %w = "qnn.constant"() {value = dense<3> : tensor<2x2xi8>} : () -> tensor<2x2xi8>
  %s = "qnn.constant"() {value = dense<0.3> : tensor<2x2xf32>} : () -> tensor<2x2xf32>
  %f = "qnn.dequantize"(%w) {scales = array<f64: 0.1>, zero_points = array<i64: 0>} : (tensor<2x2xi8>) -> tensor<2x2xf32>
  %d = arith.mulf %f, %s : tensor<2x2xf32>
  %y = "qnn.f32_matmul"(%x, %d) : (tensor<3x2xf32>, tensor<2x2xf32>) -> tensor<3x2xf32>
  return %y : tensor<3x2xf32>
}
