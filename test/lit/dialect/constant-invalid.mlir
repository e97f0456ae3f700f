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

// -----

func.func @constant_type_of_a_resource() {
  // expected-error @+1 {{'qnn.constant' op value must be of type tensor<3xi8>, but got tensor<4xi8>}}
  %y = "qnn.constant"() {value = dense_resource<blob> : tensor<4xi8>} : () -> tensor<3xi8>
  return
}

// -----

func.func @constant_value_sparse() {
  // expected-error @+1 {{'qnn.constant' op value must be dense elements, but got sparse<0, 1> : tensor<3xi8>}}
  %y = "qnn.constant"() {value = sparse<[[0]], 1> : tensor<3xi8>} : () -> tensor<3xi8>
  return
}

// -----

func.func @constant_value_number() {
  // expected-error @+1 {{'qnn.constant' op value must be dense elements, but got 1 : i8}}
  %y = "qnn.constant"() {value = 1 : i8} : () -> tensor<3xi8>
  return
}

// -----

func.func @constant_value_array() {
  // expected-error @+1 {{'qnn.constant' op value must be dense elements, but got array<i8: 1>}}
  %y = "qnn.constant"() {value = array<i8: 1>} : () -> tensor<3xi8>
  return
}

// -----

func.func @constant_value_text() {
  // expected-error @+1 {{'qnn.constant' op value must be dense elements, but got "dense"}}
  %y = "qnn.constant"() {value = "dense"} : () -> tensor<3xi8>
  return
}

// -----

func.func @constant_operand(%x: tensor<3xi8>) {
  // expected-error @+1 {{'qnn.constant' op must have 0 operands, but got 1}}
  %y = "qnn.constant"(%x) {value = dense<[1, -2, 3]> : tensor<3xi8>} : (tensor<3xi8>) -> tensor<3xi8>
  return
}

// -----

func.func @constant_no_result() {
  // expected-error @+1 {{'qnn.constant' op must have 1 result, but got 0}}
  "qnn.constant"() {value = dense<[1, -2, 3]> : tensor<3xi8>} : () -> ()
  return
}

// -----

func.func @constant_missing_attribute() {
  // expected-error @+1 {{'qnn.constant' op must have attribute 'value' (an elements attribute)}}
  %y = "qnn.constant"() {} : () -> tensor<3xi8>
  return
}

// -----

func.func @constant_unknown_attribute() {
  // expected-error @+1 {{'qnn.constant' op has no attribute 'bogus'; it has 'value'}}
  %y = "qnn.constant"() {value = dense<[1, -2, 3]> : tensor<3xi8>, bogus = 1 : i64} : () -> tensor<3xi8>
  return
}

// -----

func.func @constant_element_type() {
  // expected-error @+1 {{'qnn.constant' op result 'output' must be a non-empty static tensor of i8 or ui8 or i16 or ui16 or i32 or i64 or f32, but got tensor<2xi1>}}
  %y = "qnn.constant"() {value = dense<true> : tensor<2xi1>} : () -> tensor<2xi1>
  return
}

// -----

func.func @constant_vector() {
  // expected-error @+1 {{'qnn.constant' op result 'output' must be a non-empty static tensor of i8 or ui8 or i16 or ui16 or i32 or i64 or f32, but got vector<2xi8>}}
  %y = "qnn.constant"() {value = dense<1> : vector<2xi8>} : () -> vector<2xi8>
  return
}

// -----

func.func @constant_no_elements() {
  // expected-error @+1 {{'qnn.constant' op result 'output' must be a non-empty static tensor of i8 or ui8 or i16 or ui16 or i32 or i64 or f32, but got tensor<0xi8>}}
  %y = "qnn.constant"() {value = dense<> : tensor<0xi8>} : () -> tensor<0xi8>
  return
}

// -----

func.func @constant_too_large() {
  // expected-error @+1 {{'qnn.constant' op result 'output' must be a non-empty static tensor of i8 or ui8 or i16 or ui16 or i32 or i64 or f32 with at most 2147483647 elements, but got tensor<2147483648xi8>}}
  %y = "qnn.constant"() {value = dense<0> : tensor<2147483648xi8>} : () -> tensor<2147483648xi8>
  return
}
