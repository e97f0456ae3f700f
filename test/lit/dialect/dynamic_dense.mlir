// RUN: %roundtrip

// CHECK-LABEL: func.func @one_scale(
// CHECK: "qnn.dynamic_dense"(%arg0, %arg1, %arg2, %arg3)
// CHECK-SAME: activation = "elu", alpha = 5.000000e-01 : f64, scale_last = true, weight_scales = array<f64: 2.500000e-01>
func.func @one_scale(
  %data: tensor<2x3x4xui8>, %weight: tensor<5x4xi8>, %scale: tensor<f32>, %point: tensor<ui8>
) -> tensor<2x3x5xf32> {
  %y = "qnn.dynamic_dense"(%data, %weight, %scale, %point) {
    weight_scales = array<f64: 0.25>, activation = "elu", alpha = 0.5 : f64, scale_last = true
  } : (tensor<2x3x4xui8>, tensor<5x4xi8>, tensor<f32>, tensor<ui8>) -> tensor<2x3x5xf32>
  return %y : tensor<2x3x5xf32>
}

// CHECK-LABEL: func.func @scale_by_row(
// CHECK: "qnn.dynamic_dense"(%arg0, %arg1, %arg2, %arg3, %arg4)
// CHECK-SAME: weight_zero_points = array<i64: 1, 2, 3>
func.func @scale_by_row(
  %data: tensor<2x4xi8>, %weight: tensor<3x4xi8>, %scale: tensor<2x1xf32>, %point: tensor<2x1xi8>, %bias: tensor<3xf32>
) -> tensor<2x3xf32> {
  %y = "qnn.dynamic_dense"(%data, %weight, %scale, %point, %bias) {
    weight_scales = array<f64: 0.25, 0.5, 1.0>, weight_zero_points = array<i64: 1, 2, 3>
  } : (tensor<2x4xi8>, tensor<3x4xi8>, tensor<2x1xf32>, tensor<2x1xi8>, tensor<3xf32>) -> tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}
