// RUN: %qopt %s --qnn-tabulate-elementwise --explain-matches --verify-diagnostics
// RUN: %qopt %s --qnn-tabulate-elementwise | filecheck %s

// Covers R1, R16: what depends on two tensors, on the channel, or on what no number is defined for, is no table.

// CHECK-LABEL: func.func @two_tensors(
// CHECK: arith.maxsi
func.func @two_tensors(%x: tensor<4x3xi8>, %y: tensor<4x3xi8>) -> tensor<4x3xi8> {
  // expected-remark @+1 {{[tabulate-elementwise] 'arith.maxsi' must depend on one tensor, constants aside, but depends on two or more}}
  %0 = arith.maxsi %x, %y : tensor<4x3xi8>
  return %0 : tensor<4x3xi8>
}

// CHECK-LABEL: func.func @by_channel(
// CHECK: arith.addi
func.func @by_channel(%x: tensor<4x3xi8>) -> tensor<4x3xi8> {
  %c = "qnn.constant"() {value = dense<[1, 2, 3]> : tensor<3xi8>} : () -> tensor<3xi8>
  %b = "qnn.broadcast"(%c) {shape = array<i64: 4, 3>} : (tensor<3xi8>) -> tensor<4x3xi8>
  // expected-remark @+1 {{[tabulate-elementwise] 'arith.addi' needs constants whose elements are all equal}}
  %0 = arith.addi %x, %b : tensor<4x3xi8>
  return %0 : tensor<4x3xi8>
}

// CHECK-LABEL: func.func @by_row(
// CHECK: arith.addi
func.func @by_row(%x: tensor<4x3xi8>) -> tensor<4x3xi8> {
  %b = arith.constant dense<[[1, 1, 1], [1, 1, 1], [1, 1, 1], [2, 2, 2]]> : tensor<4x3xi8>
  // expected-remark @+1 {{[tabulate-elementwise] 'arith.addi' needs constants that depend on the last dimension alone}}
  %0 = arith.addi %x, %b : tensor<4x3xi8>
  return %0 : tensor<4x3xi8>
}

// CHECK-LABEL: func.func @division_by_zero(
// CHECK: arith.divsi
func.func @division_by_zero(%x: tensor<4x3xi8>) -> tensor<4x3xi8> {
  %c = arith.constant dense<100> : tensor<4x3xi8>
  // expected-remark @+1 {{[tabulate-elementwise] 'arith.divsi' has no defined value for every number it depends on}}
  %0 = arith.divsi %c, %x : tensor<4x3xi8>
  return %0 : tensor<4x3xi8>
}

// A view of the same bits needs no table.
// CHECK-LABEL: func.func @view(
// CHECK: tensor.bitcast
func.func @view(%x: tensor<4x3xui8>) -> tensor<4x3xi8> {
  %0 = tensor.bitcast %x : tensor<4x3xui8> to tensor<4x3xi8>
  return %0 : tensor<4x3xi8>
}
