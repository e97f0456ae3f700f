// RUN: %qopt %s --split-input-file --verify-diagnostics

func.func @constant_c1() {
  // expected-error @+1 {{'qnn.constant' op value must be of type tensor<3xi8>, but got tensor<3xui8>}}
  %y = "qnn.constant"() {value = dense<1> : tensor<3xui8>} : () -> tensor<3xi8>
  return
}

// -----

func.func @constant_c1_shape() {
  // expected-error @+1 {{'qnn.constant' op value must be of type tensor<3xi8>, but got tensor<4xi8>}}
  %y = "qnn.constant"() {value = dense<1> : tensor<4xi8>} : () -> tensor<3xi8>
  return
}

// -----

func.func @constant_c1_vector() {
  // expected-error @+1 {{'qnn.constant' op value must be of type tensor<3xi8>, but got vector<3xi8>}}
  %y = "qnn.constant"() {value = dense<1> : vector<3xi8>} : () -> tensor<3xi8>
  return
}
