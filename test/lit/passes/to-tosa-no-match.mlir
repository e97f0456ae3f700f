// RUN: not %qopt %s --qnn-to-tosa 2>&1 | filecheck %s

// What TOSA cannot express exactly is a note with the op and the attribute.

// CHECK: error: qnn-to-tosa: 2 ops have no exact counterpart in tosa

func.func @fused_multiply_adds(%x: tensor<4xi8>, %y: tensor<4xi8>) -> tensor<4xi8> {
  // CHECK: to-tosa-no-match.mlir:{{[0-9]+}}:8
  // CHECK-SAME: note: 'qnn.add' op arithmetic must be one without fused multiply-adds, but got "float_once"
  %0 = "qnn.add"(%x, %y) {
    arithmetic = "float_once", lhs_scale = 0.5 : f64, lhs_zero_point = 0 : i64, rhs_scale = 0.5 : f64,
    rhs_zero_point = 0 : i64, output_scale = 0.5 : f64, output_zero_point = 0 : i64, output_min = -128 : i64,
    output_max = 127 : i64
  } : (tensor<4xi8>, tensor<4xi8>) -> tensor<4xi8>
  return %0 : tensor<4xi8>
}

func.func @softmax(%x: tensor<4xi8>) -> tensor<4xi8> {
  // CHECK: to-tosa-no-match.mlir:{{[0-9]+}}:8
  // CHECK-SAME: note: 'qnn.softmax' op has no counterpart in tosa
  %0 = "qnn.softmax"(%x) {
    arithmetic = "float", axis = 0 : i64, input_scale = 0.5 : f64, output_scale = 0.00390625 : f64,
    output_zero_point = -128 : i64
  } : (tensor<4xi8>) -> tensor<4xi8>
  return %0 : tensor<4xi8>
}
