// RUN: %qopt %s --split-input-file --verify-diagnostics

// What both ways of resizing share, on one of them.

func.func @resize_c2(%input: tensor<1x4x6x3xi8>) {
  // expected-error @+1 {{'qnn.resize_nearest' op size must be 2 integers of at least 1, but got [8]}}
  %y = "qnn.resize_nearest"(%input) {
    size = array<i64: 8>, coordinates = "half_pixel", nearest = "floor", ratio = "divide"
  } : (tensor<1x4x6x3xi8>) -> tensor<1x8x5x3xi8>
  return
}
