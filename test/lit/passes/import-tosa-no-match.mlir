// RUN: not %qopt %s --qnn-import-tosa 2>&1 | filecheck %s

// Every op without a counterpart is a note at its place.

// CHECK: error: qnn-import-tosa: 8 ops have no counterpart in qnn

// What an unsupported op's readers need is not known, but whether they could be converted is.
func.func @unknown_ops(%x: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK-NEXT: import-tosa-no-match.mlir:{{[0-9]+}}:8
  // CHECK-SAME: note: 'tosa.exp' op has no counterpart in qnn
  %0 = tosa.exp %x : (tensor<4xf32>) -> tensor<4xf32>
  %1 = tosa.identity %0 : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: note: 'tosa.sin' op has no counterpart in qnn
  %2 = tosa.sin %1 : (tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

func.func @floats(%x: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK: note: 'tosa.clamp' op must clamp integers, but got f32
  %0 = tosa.clamp %x {min_val = 0.0 : f32, max_val = 6.0 : f32} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

func.func @narrowing_cast(%x: tensor<4xi32>) -> tensor<4xi8> {
  // CHECK: note: 'tosa.cast' op must go to a wider integer type, but got i32 to i8
  %0 = tosa.cast %x : (tensor<4xi32>) -> tensor<4xi8>
  return %0 : tensor<4xi8>
}

func.func @table_of_16_bits(%x: tensor<4xi16>) -> tensor<4xi32> {
  %table = "tosa.const"() <{values = dense<0> : tensor<513xi16>}> : () -> tensor<513xi16>
  // CHECK: note: 'tosa.table' op table must have 256 entries, but got 513
  %0 = tosa.table %x, %table : (tensor<4xi16>, tensor<513xi16>) -> tensor<4xi32>
  return %0 : tensor<4xi32>
}

func.func @second_nudge_of_a_short_multiplier(%x: tensor<4xi32>) -> tensor<4xi8> {
  %multiplier = "tosa.const"() <{values = dense<1000> : tensor<1xi32>}> : () -> tensor<1xi32>
  %shift = "tosa.const"() <{values = dense<32> : tensor<1xi8>}> : () -> tensor<1xi8>
  %input_zp = "tosa.const"() <{values = dense<0> : tensor<1xi32>}> : () -> tensor<1xi32>
  %output_zp = "tosa.const"() <{values = dense<0> : tensor<1xi8>}> : () -> tensor<1xi8>
  // CHECK: note: 'tosa.rescale' op multiplier of DOUBLE_ROUND must be 2^30 or more with a shift by 32, but got 1000
  %0 = tosa.rescale %x, %multiplier, %shift, %input_zp, %output_zp {input_unsigned = false, output_unsigned = false,
    per_channel = false, rounding_mode = DOUBLE_ROUND, scale32 = true}
    : (tensor<4xi32>, tensor<1xi32>, tensor<1xi8>, tensor<1xi32>, tensor<1xi8>) -> tensor<4xi8>
  return %0 : tensor<4xi8>
}

func.func @parameters_known_at_run_time(%x: tensor<4xi32>, %multiplier: tensor<1xi32>) -> tensor<4xi8> {
  %shift = "tosa.const"() <{values = dense<32> : tensor<1xi8>}> : () -> tensor<1xi8>
  %input_zp = "tosa.const"() <{values = dense<0> : tensor<1xi32>}> : () -> tensor<1xi32>
  %output_zp = "tosa.const"() <{values = dense<0> : tensor<1xi8>}> : () -> tensor<1xi8>
  // CHECK: note: 'tosa.rescale' op multiplier must be a constant, but got a value that is known at run time only
  %0 = tosa.rescale %x, %multiplier, %shift, %input_zp, %output_zp {input_unsigned = false, output_unsigned = false,
    per_channel = false, rounding_mode = SINGLE_ROUND, scale32 = true}
    : (tensor<4xi32>, tensor<1xi32>, tensor<1xi8>, tensor<1xi32>, tensor<1xi8>) -> tensor<4xi8>
  return %0 : tensor<4xi8>
}

func.func @unsigned_words(%x: tensor<4xi16>) -> tensor<4xi8> {
  %multiplier = "tosa.const"() <{values = dense<1073741824> : tensor<1xi32>}> : () -> tensor<1xi32>
  %shift = "tosa.const"() <{values = dense<32> : tensor<1xi8>}> : () -> tensor<1xi8>
  %input_zp = "tosa.const"() <{values = dense<-32768> : tensor<1xi16>}> : () -> tensor<1xi16>
  %output_zp = "tosa.const"() <{values = dense<0> : tensor<1xi8>}> : () -> tensor<1xi8>
  // CHECK: note: 'tosa.rescale' op unsigned input must have 8 bits, but got i16
  %0 = tosa.rescale %x, %multiplier, %shift, %input_zp, %output_zp {input_unsigned = true, output_unsigned = false,
    per_channel = false, rounding_mode = SINGLE_ROUND, scale32 = true}
    : (tensor<4xi16>, tensor<1xi32>, tensor<1xi8>, tensor<1xi16>, tensor<1xi8>) -> tensor<4xi8>
  return %0 : tensor<4xi8>
}
