// RUN: %qopt %s --qnn-inline-outlined | filecheck %s

// Functions without the tag stay, and so do declarations: their code is elsewhere.

// CHECK: func.func private @declared(tensor<4xi8>) -> tensor<4xi8> attributes {qnn.external = "qnn.clip"}
func.func private @declared(tensor<4xi8>) -> tensor<4xi8> attributes {qnn.external = "qnn.clip"}

// CHECK: func.func private @plain(
func.func private @plain(%x: tensor<4xi8>) -> tensor<4xi8> {
  return %x : tensor<4xi8>
}

// CHECK-LABEL: func.func @main(
// CHECK-NEXT: call @declared
// CHECK-NEXT: call @plain
func.func @main(%x: tensor<4xi8>) -> tensor<4xi8> {
  %0 = call @declared(%x) : (tensor<4xi8>) -> tensor<4xi8>
  %1 = call @plain(%0) : (tensor<4xi8>) -> tensor<4xi8>
  return %1 : tensor<4xi8>
}
