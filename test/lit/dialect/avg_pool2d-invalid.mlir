// RUN: %qopt %s --split-input-file --verify-diagnostics

func.func @avg_pool2d_c5(%data: tensor<1x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.avg_pool2d' op zero_point must be in [-128, 127], but got 128}}
  %y = "qnn.avg_pool2d"(%data) {
    kernel = array<i64: 2, 2>, output_min = -128 : i64, output_max = 127 : i64, zero_point = 128 : i64
  } : (tensor<1x4x4x2xi8>) -> tensor<1x3x3x2xi8>
  return
}

// -----

func.func @avg_pool2d_c6(%data: tensor<1x300x300x2xi16>) {
  // expected-error @+1 {{'qnn.avg_pool2d' op window of i16 must have at most 65536 elements, but got 90000}}
  %y = "qnn.avg_pool2d"(%data) {
    kernel = array<i64: 300, 300>, output_min = -128 : i64, output_max = 127 : i64, zero_point = 0 : i64
  } : (tensor<1x300x300x2xi16>) -> tensor<1x1x1x2xi16>
  return
}
