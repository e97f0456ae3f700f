// RUN: %qopt %s --split-input-file --verify-diagnostics

func.func @range_c1(%minimum: tensor<5x1xf32>, %maximum: tensor<5xf32>) {
  // expected-error @+1 {{'qnn.range_scale' op maximum must have the shape [5, 1], but got [5]}}
  %y = "qnn.range_scale"(%minimum, %maximum) : (tensor<5x1xf32>, tensor<5xf32>) -> tensor<5x1xf32>
  return
}
