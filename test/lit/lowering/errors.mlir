// RUN: %qopt %s --split-input-file --verify-diagnostics --compile-to=llvm --target=generic

// What cannot be compiled is one error at its op.

func.func @weight_at_run_time(%x: tensor<1x3x3x2xi8>, %w: tensor<4x2x2x2xi8>) -> tensor<1x4x4x4xi32> {
  // expected-error @+1 {{'qnn.conv_transpose2d' op weight must be a constant to be compiled, but got a value that}}
  %0 = "qnn.conv_transpose2d"(%x, %w) {
    input_scale = 0.5 : f64, input_zero_point = 3 : i64,
    weight_scales = array<f64: 0.25>, weight_zero_points = array<i64: 0>
  } : (tensor<1x3x3x2xi8>, tensor<4x2x2x2xi8>) -> tensor<1x4x4x4xi32>
  return %0 : tensor<1x4x4x4xi32>
}

// -----

func.func @bias_at_run_time(%x: tensor<4x64xi8>, %b: tensor<32xi32>) -> tensor<4x32xi32> {
  %w = "qnn.constant"() {value = dense<3> : tensor<32x64xi8>} : () -> tensor<32x64xi8>
  // expected-error @+1 {{'qnn.dense' op bias must be a constant to be compiled}}
  %0 = "qnn.dense"(%x, %w, %b) {
    input_scale = 0.5 : f64, input_zero_point = 3 : i64,
    weight_scales = array<f64: 0.25>, weight_zero_points = array<i64: 0>
  } : (tensor<4x64xi8>, tensor<32x64xi8>, tensor<32xi32>) -> tensor<4x32xi32>
  return %0 : tensor<4x32xi32>
}

// -----

// An f32 rounding mode has no such limit; a fixed-point one shifts by 31 minus the exponent.
func.func @multiplier_too_large(%x: tensor<4x64xi8>) -> tensor<4x32xi8> {
  %w = "qnn.constant"() {value = dense<3> : tensor<32x64xi8>} : () -> tensor<32x64xi8>
  %0 = "qnn.dense"(%x, %w) {
    input_scale = 1048576.0 : f64, input_zero_point = 3 : i64,
    weight_scales = array<f64: 1024.0>, weight_zero_points = array<i64: 0>
  } : (tensor<4x64xi8>, tensor<32x64xi8>) -> tensor<4x32xi32>
  // expected-error @+1 {{'qnn.fused_dense' op a requantize multiplier must be below 2^30, but got 2^30}}
  %1 = "qnn.requantize"(%0) {
    input_scale = 1048576.0 : f64, weight_scales = array<f64: 1024.0>, input_zero_points = array<i64: 0>,
    output_scale = 1.0 : f64, output_zero_point = -3 : i64, axis = 1 : i64, rounding = "fixed64_up", multiplier = "f64"
  } : (tensor<4x32xi32>) -> tensor<4x32xi8>
  return %1 : tensor<4x32xi8>
}

// -----

// expected-error @+1 {{a module must have one function, or one named main, to be compiled, but got 0}}
module {
}

// -----

func.func @first(%x: tensor<4xi8>) -> tensor<4xi8> {
  return %x : tensor<4xi8>
}
// expected-error @+1 {{a module must have one function, or one named main, to be compiled, but got 2}}
func.func @second(%x: tensor<4xi8>) -> tensor<4xi8> {
  return %x : tensor<4xi8>
}

// -----

// expected-error @+1 {{a function must have one block to be compiled, but got 2}}
func.func @blocks(%x: tensor<4xi8>) -> tensor<4xi8> {
  cf.br ^bb1
^bb1:
  return %x : tensor<4xi8>
}

// -----

// expected-error @+1 {{a function must have one block to be compiled, but got 0}}
func.func private @declaration(%x: tensor<4xi8>) -> tensor<4xi8>

// -----

// expected-error @+1 {{argument 0 of a function must be a static tensor of}}
func.func @dynamic(%x: tensor<?xi8>) -> tensor<?xi8> {
  return %x : tensor<?xi8>
}

// -----

func.func @foreign_ops(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+2 {{2 ops cannot be lowered: math.atan, math.tan}}
  // expected-note @+1 {{'math.tan' op has no lowering}}
  %0 = math.tan %x : tensor<4xf32>
  // expected-note @+1 {{'math.atan' op has no lowering}}
  %1 = math.atan %0 : tensor<4xf32>
  return %1 : tensor<4xf32>
}

// -----

func.func @small_floats(%x: tensor<4xbf16>) -> tensor<4xbf16> {
  // expected-error @+2 {{1 ops cannot be lowered: arith.addf}}
  // expected-note @+1 {{'arith.addf' op computes with bf16: extend operands to f32 by arith.extf, truncate by arith.truncf}}
  %0 = arith.addf %x, %x : tensor<4xbf16>
  return %0 : tensor<4xbf16>
}

// -----

// expected-error @+1 {{qnn.state of argument 0 must be a result of its own and of its type, but got 1}}
func.func @state_of_no_result(%x: tensor<4xf32> {qnn.state = 1 : i64}) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// -----

// expected-error @+1 {{qnn.state of argument 0 must be a result of its own and of its type, but got 0}}
func.func @state_of_two(%x: tensor<4xf32> {qnn.state = 0 : i64}, %y: tensor<4xf32> {qnn.state = 0 : i64}) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// -----

// expected-error @+1 {{qnn.state of argument 0 must be an integer, but got "0"}}
func.func @state_of_text(%x: tensor<4xf32> {qnn.state = "0"}) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// -----

// expected-error @+1 {{qnn.start of argument 0 must be elements of its type}}
func.func @start_of_another_type(%x: tensor<4xf32> {qnn.state = 0 : i64, qnn.start = dense<0> : tensor<4xi32>}) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
