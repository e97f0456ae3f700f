// RUN: not %qopt %s --qnn-import-tosa 2>&1 | filecheck %s

// Every op without a counterpart is a note at its location.

// CHECK: error: qnn-import-tosa: 9 ops have no counterpart in qnn

// What an unsupported op's readers need is not known, but whether they could be converted is.
func.func @unknown_ops(%x: tensor<1x4x8xf32>) -> (tensor<1x4x5xf32>, tensor<1x4x5xf32>) {
  // CHECK: import-tosa-no-match.mlir:{{[0-9]+}}:23
  // CHECK-SAME: note: 'tosa.rfft2d' op has no counterpart in qnn
  %real, %imaginary = tosa.rfft2d %x {local_bound = false}
    : (tensor<1x4x8xf32>) -> (tensor<1x4x5xf32>, tensor<1x4x5xf32>)
  %0 = tosa.exp %real : (tensor<1x4x5xf32>) -> tensor<1x4x5xf32>
  // CHECK: note: 'tosa.custom' op has no counterpart in qnn
  %1 = tosa.custom %0 {domain_name = "a.domain", implementation_attrs = "", operator_name = "an_op"}
    : (tensor<1x4x5xf32>) -> tensor<1x4x5xf32>
  return %0, %1 : tensor<1x4x5xf32>, tensor<1x4x5xf32>
}

func.func @halves(%x: tensor<4xf16>) -> tensor<4xf16> {
  // CHECK: note: 'tosa.exp' op must have operands and results of a non-empty static tensor of
  // CHECK-SAME: but got tensor<4xf16>
  %0 = tosa.exp %x : (tensor<4xf16>) -> tensor<4xf16>
  return %0 : tensor<4xf16>
}

func.func @table_of_the_other_width(%x: tensor<4xi16>) -> tensor<4xi16> {
  %table = "tosa.const"() <{values = dense<0> : tensor<256xi16>}> : () -> tensor<256xi16>
  // CHECK: note: 'tosa.table' op table must have 256 entries for i8 or 513 for i16, but got 256 for i16
  %0 = tosa.table %x, %table : (tensor<4xi16>, tensor<256xi16>) -> tensor<4xi16>
  return %0 : tensor<4xi16>
}

func.func @shift_by_too_much(%x: tensor<4xi32>) -> tensor<4xi8> {
  %multiplier = "tosa.const"() <{values = dense<1000> : tensor<1xi32>}> : () -> tensor<1xi32>
  %shift = "tosa.const"() <{values = dense<63> : tensor<1xi8>}> : () -> tensor<1xi8>
  %input_zp = "tosa.const"() <{values = dense<0> : tensor<1xi32>}> : () -> tensor<1xi32>
  %output_zp = "tosa.const"() <{values = dense<0> : tensor<1xi8>}> : () -> tensor<1xi8>
  // CHECK: note: 'tosa.rescale' op shift must be in [2, 62], but got 63
  %0 = tosa.rescale %x, %multiplier, %shift, %input_zp, %output_zp {input_unsigned = false, output_unsigned = false,
    per_channel = false, rounding_mode = SINGLE_ROUND, scale32 = true}
    : (tensor<4xi32>, tensor<1xi32>, tensor<1xi8>, tensor<1xi32>, tensor<1xi8>) -> tensor<4xi8>
  return %0 : tensor<4xi8>
}

func.func @depthwise_weight_known_at_run_time(%x: tensor<1x2x2x1xi8>, %weight: tensor<1x1x1x1xi8>)
    -> tensor<1x2x2x1xi32> {
  %bias = "tosa.const"() <{values = dense<1> : tensor<1xi32>}> : () -> tensor<1xi32>
  %zp = "tosa.const"() <{values = dense<0> : tensor<1xi8>}> : () -> tensor<1xi8>
  // CHECK: note: 'tosa.depthwise_conv2d' op weight must be a constant, but got a value that is known at run time only
  %0 = tosa.depthwise_conv2d %x, %weight, %bias, %zp, %zp {acc_type = i32, pad = array<i64: 0, 0, 0, 0>,
    stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>}
    : (tensor<1x2x2x1xi8>, tensor<1x1x1x1xi8>, tensor<1xi32>, tensor<1xi8>, tensor<1xi8>) -> tensor<1x2x2x1xi32>
  return %0 : tensor<1x2x2x1xi32>
}

func.func @shape_of_a_quotient_by_zero(%x: tensor<6xi8>) -> tensor<6xi8> {
  %six = tosa.const_shape {values = dense<6> : tensor<1xindex>} : () -> !tosa.shape<1>
  %zero = tosa.const_shape {values = dense<0> : tensor<1xindex>} : () -> !tosa.shape<1>
  %tiles = tosa.div_floor_shape %six, %zero : (!tosa.shape<1>, !tosa.shape<1>) -> !tosa.shape<1>
  // CHECK: note: 'tosa.tile' op multiples must be a shape, but 'tosa.div_floor_shape' of these operands gives none
  %0 = tosa.tile %x, %tiles : (tensor<6xi8>, !tosa.shape<1>) -> tensor<6xi8>
  return %0 : tensor<6xi8>
}

func.func @branches(%condition: tensor<i1>, %a: tensor<4xi8>, %b: tensor<4xi8>) -> tensor<4xi8> {
  // CHECK: note: 'tosa.cond_if' op has no counterpart in qnn
  %0 = tosa.cond_if %condition (%x = %a, %y = %b) : tensor<i1> (tensor<4xi8>, tensor<4xi8>) -> tensor<4xi8> {
  ^bb0(%x: tensor<4xi8>, %y: tensor<4xi8>):
    tosa.yield %x : tensor<4xi8>
  } else {
  ^bb0(%x: tensor<4xi8>, %y: tensor<4xi8>):
    tosa.yield %y : tensor<4xi8>
  }
  return %0 : tensor<4xi8>
}

func.func @loop(%a: tensor<i32>) -> tensor<i32> {
  // CHECK: note: 'tosa.while_loop' op has no counterpart in qnn
  %0 = tosa.while_loop (%x = %a) : (tensor<i32>) -> tensor<i32> {
    %limit = "tosa.const"() <{values = dense<10> : tensor<i32>}> : () -> tensor<i32>
    %goes_on = tosa.greater_equal %limit, %x : (tensor<i32>, tensor<i32>) -> tensor<i1>
    tosa.yield %goes_on : tensor<i1>
  } do {
  ^bb0(%x: tensor<i32>):
    %next = tosa.add %x, %x : (tensor<i32>, tensor<i32>) -> tensor<i32>
    tosa.yield %next : tensor<i32>
  }
  return %0 : tensor<i32>
}
