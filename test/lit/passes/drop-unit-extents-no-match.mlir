// RUN: %qopt %s --qnn-drop-unit-extents --explain-matches 2>&1 | filecheck %s

// CHECK: remark: [drop-unit-reductions] 'qnn.f32_max' takes the extreme of one number and zero

// CHECK-LABEL: func.func @one_element(
// CHECK-NEXT: arith.addf %arg0, %arg0 : tensor<1x1xf32>
func.func @one_element(%arg0: tensor<1x1xf32>) -> tensor<1x1xf32> {
  %0 = arith.addf %arg0, %arg0 : tensor<1x1xf32>
  return %0 : tensor<1x1xf32>
}

// CHECK-LABEL: func.func @units_before(
// CHECK-NEXT: arith.addf %arg0, %arg0 : tensor<1x3x1x5xf32>
func.func @units_before(%arg0: tensor<1x3x1x5xf32>) -> tensor<1x3x1x5xf32> {
  %0 = arith.addf %arg0, %arg0 : tensor<1x3x1x5xf32>
  return %0 : tensor<1x3x1x5xf32>
}

// CHECK-LABEL: func.func @with_zero(
// CHECK-NEXT: "qnn.f32_max"(%arg0) {axes = array<i64: 1>, from_zero = true}
func.func @with_zero(%arg0: tensor<3x1xf32>) -> tensor<3xf32> {
  %0 = "qnn.f32_max"(%arg0) {axes = array<i64: 1>, from_zero = true} : (tensor<3x1xf32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}
