// RUN: %qopt %s --qnn-to-linalg=target=generic | filecheck %s

// The network becomes kernels and a main that calls them; what main takes stands on the module.

// CHECK: module attributes {
// CHECK-SAME: qnn.phase = "linalg"
// CHECK-SAME: qnn.target = "generic"
// CHECK-LABEL: func.func private @kernel_0(
// CHECK: linalg.generic
// CHECK: bufferization.materialize_in_destination
// CHECK-LABEL: func.func @main(
// CHECK: call @kernel_0({{.*}}%arg0, %arg1) {qnn.label = "qnn.clip"}
func.func @main(%x: tensor<4x16xi8>) -> tensor<4x16xi8> {
  %0 = "qnn.clip"(%x) {min = 0 : i64, max = 6 : i64} : (tensor<4x16xi8>) -> tensor<4x16xi8>
  return %0 : tensor<4x16xi8>
}
