// RUN: %qopt %s --tanh-to-softsign --explain-matches 2>&1 | filecheck %s
// RUN: %qopt %s --tanh-to-softsign --fuse-qnn | filecheck %s --check-prefix=FUSED
// RUN: %qopt %s --tanh-to-softsign -o %t.mlir && %qrun %t.mlir --reference | filecheck %s --check-prefix=RAN

// CHECK: remark: [tanh-is-softsign] 'qnn.tanh' has a result in which the difference would show
// CHECK: "qnn.softsign"
// CHECK: "qnn.tanh"
// FUSED-NOT: softsign
// FUSED: "qnn.lut"
// RAN: 0 of 32 elements differ from the reference
func.func @main(%x: tensor<4x8xi8>) -> tensor<4x8xi8> {
  %y = "qnn.tanh"(%x) {
    input_scale = 0.25 : f64, input_zero_point = 0 : i64, output_scale = 0.0078125 : f64, output_zero_point = 0 : i64
  } : (tensor<4x8xi8>) -> tensor<4x8xi8>
  %z = "qnn.tanh"(%y) {
    input_scale = 0.0078125 : f64, input_zero_point = 0 : i64, output_scale = 0.00390625 : f64,
    output_zero_point = 0 : i64
  } : (tensor<4x8xi8>) -> tensor<4x8xi8>
  return %z : tensor<4x8xi8>
}
