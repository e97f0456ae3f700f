// RUN: %qopt %s --qnn-inline-outlined | filecheck %s

// Every call is replaced, the functions are gone.

// CHECK-NOT: private
// CHECK-LABEL: func.func @main(
// CHECK-NEXT: %0 = "qnn.clip"(%arg0) {max = 6 : i64, min = 0 : i64}
// CHECK-NEXT: %1 = "qnn.clip"(%0) {max = 6 : i64, min = 0 : i64}
// CHECK-NEXT: return %1
func.func private @clip(%x: tensor<4xi8>) -> tensor<4xi8> attributes {qnn.external = "qnn.clip"} {
  %0 = "qnn.clip"(%x) {max = 6 : i64, min = 0 : i64} : (tensor<4xi8>) -> tensor<4xi8>
  return %0 : tensor<4xi8>
}

func.func @main(%x: tensor<4xi8>) -> tensor<4xi8> {
  %0 = call @clip(%x) : (tensor<4xi8>) -> tensor<4xi8>
  %1 = call @clip(%0) : (tensor<4xi8>) -> tensor<4xi8>
  return %1 : tensor<4xi8>
}
