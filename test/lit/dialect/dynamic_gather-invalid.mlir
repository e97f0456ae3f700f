// RUN: %qopt %s --split-input-file --verify-diagnostics

func.func @dynamic_gather_c1(%data: tensor<4x6xi8>, %indices: tensor<3xi64>) {
  // expected-error @+1 {{'qnn.dynamic_gather' op result element type must be i8, but got ui8}}
  %y = "qnn.dynamic_gather"(%data, %indices) : (tensor<4x6xi8>, tensor<3xi64>) -> tensor<3x6xui8>
  return
}

// -----

func.func @dynamic_gather_c2(%data: tensor<4x6xi8>, %indices: tensor<3xi64>) {
  // expected-error @+1 {{'qnn.dynamic_gather' op axis must be in [0, 2), but got 2}}
  %y = "qnn.dynamic_gather"(%data, %indices) {axis = 2 : i64} : (tensor<4x6xi8>, tensor<3xi64>) -> tensor<3x6xi8>
  return
}
