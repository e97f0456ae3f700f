// RUN: %qopt %s --split-input-file --verify-diagnostics

func.func @avg_pool2d_c5(%data: tensor<1x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.avg_pool2d' op zero_point must be in [-128, 127], but got 128}}
  %y = "qnn.avg_pool2d"(%data) {
    kernel = array<i64: 2, 2>, output_min = -128 : i64, output_max = 127 : i64, zero_point = 128 : i64
  } : (tensor<1x4x4x2xi8>) -> tensor<1x3x3x2xi8>
  return
}
