// RUN: %qopt %s --split-input-file --verify-diagnostics

func.func @broadcast_c1(%input: tensor<1x3xi8>) {
  // expected-error @+1 {{'qnn.broadcast' op result element type must be i8, but got f32}}
  %y = "qnn.broadcast"(%input) {shape = array<i64: 2, 3>} : (tensor<1x3xi8>) -> tensor<2x3xf32>
  return
}

// -----

func.func @broadcast_c2(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.broadcast' op shape must be one to which [2, 3] broadcasts, but got [4, 3]}}
  %y = "qnn.broadcast"(%input) {shape = array<i64: 4, 3>} : (tensor<2x3xi8>) -> tensor<4x3xi8>
  return
}

// -----

func.func @broadcast_c2_fewer_dimensions(%input: tensor<1x3xi8>) {
  // expected-error @+1 {{'qnn.broadcast' op shape must be one to which [1, 3] broadcasts, but got [3]}}
  %y = "qnn.broadcast"(%input) {shape = array<i64: 3>} : (tensor<1x3xi8>) -> tensor<3xi8>
  return
}

// -----

func.func @broadcast_c2_zero(%input: tensor<1xi8>) {
  // expected-error @+1 {{'qnn.broadcast' op shape must be one to which [1] broadcasts, but got [0]}}
  %y = "qnn.broadcast"(%input) {shape = array<i64: 0>} : (tensor<1xi8>) -> tensor<1xi8>
  return
}

// -----

func.func @broadcast_c2_negative(%input: tensor<1xi8>) {
  // expected-error @+1 {{'qnn.broadcast' op shape must be one to which [1] broadcasts, but got [-2, 1]}}
  %y = "qnn.broadcast"(%input) {shape = array<i64: -2, 1>} : (tensor<1xi8>) -> tensor<2x1xi8>
  return
}

// -----

func.func @broadcast_too_few_operands() {
  // expected-error @+1 {{'qnn.broadcast' op must have 1 operand, but got 0}}
  %y = "qnn.broadcast"() {shape = array<i64: 3, 2>} : () -> tensor<3x2xi8>
  return
}


// -----

func.func @broadcast_too_many_operands(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.broadcast' op must have 1 operand, but got 2}}
  %y = "qnn.broadcast"(%input, %input) {
    shape = array<i64: 3, 2>
  } : (tensor<2x3xi8>, tensor<2x3xi8>) -> tensor<3x2xi8>
  return
}


// -----

func.func @broadcast_no_result(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.broadcast' op must have 1 result, but got 0}}
  "qnn.broadcast"(%input) {shape = array<i64: 3, 2>} : (tensor<2x3xi8>) -> ()
  return
}


// -----

func.func @broadcast_two_results(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.broadcast' op must have 1 result, but got 2}}
  %y:2 = "qnn.broadcast"(%input) {shape = array<i64: 3, 2>} : (tensor<2x3xi8>) -> (tensor<3x2xi8>, tensor<3x2xi8>)
  return
}


// -----

func.func @broadcast_missing_attribute(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.broadcast' op must have attribute 'shape' (an array<i64>)}}
  %y = "qnn.broadcast"(%input) {} : (tensor<2x3xi8>) -> tensor<3x2xi8>
  return
}


// -----

func.func @broadcast_unknown_attribute(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.broadcast' op has no attribute 'bogus'; it has 'shape'}}
  %y = "qnn.broadcast"(%input) {shape = array<i64: 3, 2>, bogus = 1 : i64} : (tensor<2x3xi8>) -> tensor<3x2xi8>
  return
}


// -----

func.func @broadcast_attribute_kind(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.broadcast' op shape must be an array<i64>, but got [3, 2]}}
  %y = "qnn.broadcast"(%input) {shape = [3, 2]} : (tensor<2x3xi8>) -> tensor<3x2xi8>
  return
}


// -----

func.func @broadcast_memref(%input: memref<2x3xi8>) {
  // expected-error @+1 {{'qnn.broadcast' op operand 'input' must be a non-empty static tensor of i8 or ui8 or i16 or ui16 or i32 or i64 or f32, but got memref<2x3xi8>}}
  %y = "qnn.broadcast"(%input) {shape = array<i64: 3, 2>} : (memref<2x3xi8>) -> tensor<3x2xi8>
  return
}


// -----

func.func @broadcast_vector(%input: vector<2x3xi8>) {
  // expected-error @+1 {{'qnn.broadcast' op operand 'input' must be a non-empty static tensor of i8 or ui8 or i16 or ui16 or i32 or i64 or f32, but got vector<2x3xi8>}}
  %y = "qnn.broadcast"(%input) {shape = array<i64: 3, 2>} : (vector<2x3xi8>) -> tensor<3x2xi8>
  return
}


// -----

func.func @broadcast_unranked(%input: tensor<*xi8>) {
  // expected-error @+1 {{'qnn.broadcast' op operand 'input' must be a non-empty static tensor of i8 or ui8 or i16 or ui16 or i32 or i64 or f32, but got tensor<*xi8>}}
  %y = "qnn.broadcast"(%input) {shape = array<i64: 3, 2>} : (tensor<*xi8>) -> tensor<3x2xi8>
  return
}


// -----

func.func @broadcast_dynamic_shape(%input: tensor<?x3xi8>) {
  // expected-error @+1 {{'qnn.broadcast' op operand 'input' must be a non-empty static tensor of i8 or ui8 or i16 or ui16 or i32 or i64 or f32, but got tensor<?x3xi8>}}
  %y = "qnn.broadcast"(%input) {shape = array<i64: 3, 2>} : (tensor<?x3xi8>) -> tensor<3x2xi8>
  return
}


// -----

func.func @broadcast_no_elements(%input: tensor<0x3xi8>) {
  // expected-error @+1 {{'qnn.broadcast' op operand 'input' must be a non-empty static tensor of i8 or ui8 or i16 or ui16 or i32 or i64 or f32, but got tensor<0x3xi8>}}
  %y = "qnn.broadcast"(%input) {shape = array<i64: 3, 2>} : (tensor<0x3xi8>) -> tensor<3x2xi8>
  return
}


// -----

func.func @broadcast_element_type(%input: tensor<2x3xf64>) {
  // expected-error @+1 {{'qnn.broadcast' op operand 'input' must be a non-empty static tensor of i8 or ui8 or i16 or ui16 or i32 or i64 or f32, but got tensor<2x3xf64>}}
  %y = "qnn.broadcast"(%input) {shape = array<i64: 3, 2>} : (tensor<2x3xf64>) -> tensor<3x2xi8>
  return
}


// -----

func.func @broadcast_encoding(%input: tensor<2x3xi8, "encoding">) {
  // expected-error @+1 {{'qnn.broadcast' op operand 'input' must be a non-empty static tensor of i8 or ui8 or i16 or ui16 or i32 or i64 or f32 without encoding, but got tensor<2x3xi8, "encoding">}}
  %y = "qnn.broadcast"(%input) {shape = array<i64: 3, 2>} : (tensor<2x3xi8, "encoding">) -> tensor<3x2xi8>
  return
}


// -----

func.func @broadcast_too_large(%input: tensor<2147483648x3xi8>) {
  // expected-error @+1 {{'qnn.broadcast' op operand 'input' must be a non-empty static tensor of i8 or ui8 or i16 or ui16 or i32 or i64 or f32 with at most 2147483647 elements, but got tensor<2147483648x3xi8>}}
  %y = "qnn.broadcast"(%input) {shape = array<i64: 3, 2>} : (tensor<2147483648x3xi8>) -> tensor<3x2xi8>
  return
}


// -----

func.func @broadcast_result_shape(%input: tensor<1x3xi8>) {
  // expected-error @+1 {{'qnn.broadcast' op result shape must be 2x3, but got 1x3}}
  %y = "qnn.broadcast"(%input) {shape = array<i64: 2, 3>} : (tensor<1x3xi8>) -> tensor<1x3xi8>
  return
}
