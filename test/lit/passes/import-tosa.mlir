// RUN: %qopt %s --qnn-import-tosa | filecheck %s
// RUN: %qopt %s --qnn-import-tosa --fuse-qnn | filecheck %s --check-prefix=FUSED

// Zero points become attributes, a rescale's multiplier and shift become scales that quantize back to them.

// CHECK-LABEL: func.func @convolution(
// CHECK-NOT: tosa.
// CHECK: "qnn.conv2d"
// CHECK-SAME: input_zero_point = -7 : i64, padding = array<i64: 1, 2, 0, 1>
// CHECK-SAME: weight_scales = array<f64: 1.562500e-02, 2.34375{{0*}}e-02>
// CHECK: "qnn.requantize"
// CHECK-SAME: axis = 3 : i64
// CHECK-SAME: output_zero_point = -5 : i64, rounding = "fixed64_double"
// CHECK-SAME: weight_scales = array<f64: 1.562500e-02, 2.34375{{0*}}e-02>
// CHECK: "qnn.clip"({{.*}}) {max = 100 : i64, min = -100 : i64}
// FUSED-LABEL: func.func @convolution(
// FUSED: "qnn.fused_conv2d"
// FUSED-SAME: {clamp = {max = 100 : i64, min = -100 : i64}}]
// FUSED-NEXT: return
func.func @convolution(%x: tensor<1x5x5x3xi8>) -> tensor<1x4x6x2xi8> {
  %weight = "tosa.const"() <{values = dense<3> : tensor<2x3x3x3xi8>}> : () -> tensor<2x3x3x3xi8>
  %bias = "tosa.const"() <{values = dense<[1, 2]> : tensor<2xi32>}> : () -> tensor<2xi32>
  %input_zp = "tosa.const"() <{values = dense<-7> : tensor<1xi8>}> : () -> tensor<1xi8>
  %weight_zp = "tosa.const"() <{values = dense<0> : tensor<1xi8>}> : () -> tensor<1xi8>
  %0 = tosa.conv2d %x, %weight, %bias, %input_zp, %weight_zp {acc_type = i32, pad = array<i64: 1, 0, 2, 1>,
    stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>}
    : (tensor<1x5x5x3xi8>, tensor<2x3x3x3xi8>, tensor<2xi32>, tensor<1xi8>, tensor<1xi8>) -> tensor<1x4x6x2xi32>
  %multiplier = "tosa.const"() <{values = dense<[1073741824, 1610612736]> : tensor<2xi32>}> : () -> tensor<2xi32>
  %shift = "tosa.const"() <{values = dense<36> : tensor<2xi8>}> : () -> tensor<2xi8>
  %sum_zp = "tosa.const"() <{values = dense<0> : tensor<1xi32>}> : () -> tensor<1xi32>
  %output_zp = "tosa.const"() <{values = dense<-5> : tensor<1xi8>}> : () -> tensor<1xi8>
  %1 = tosa.rescale %0, %multiplier, %shift, %sum_zp, %output_zp {input_unsigned = false, output_unsigned = false,
    per_channel = true, rounding_mode = DOUBLE_ROUND, scale32 = true}
    : (tensor<1x4x6x2xi32>, tensor<2xi32>, tensor<2xi8>, tensor<1xi32>, tensor<1xi8>) -> tensor<1x4x6x2xi8>
  %2 = tosa.clamp %1 {min_val = -100 : i8, max_val = 100 : i8} : (tensor<1x4x6x2xi8>) -> tensor<1x4x6x2xi8>
  return %2 : tensor<1x4x6x2xi8>
}

// Scales that types give are used; the types become those of the quantized values.

// CHECK-LABEL: func.func @quantized_types(
// CHECK-SAME: %arg0: tensor<4xui8> {qnn.scale = 5.000000e-01 : f64, qnn.zero_point = 3 : i64}
// CHECK-SAME: -> (tensor<4xi8> {qnn.scale = 2.500000e-01 : f64, qnn.zero_point = -3 : i64})
// CHECK: "qnn.requantize"(%arg0)
// CHECK-SAME: input_scale = 5.000000e-01 : f64, input_zero_points = array<i64: 3>
// CHECK-SAME: output_scale = 2.500000e-01 : f64, output_zero_point = -3 : i64, rounding = "fixed64_up"
func.func @quantized_types(%x: tensor<4x!quant.uniform<u8:f32, 0.5:3>>) -> tensor<4x!quant.uniform<i8:f32, 0.25:-3>> {
  %multiplier = "tosa.const"() <{values = dense<1073741824> : tensor<1xi32>}> : () -> tensor<1xi32>
  %shift = "tosa.const"() <{values = dense<29> : tensor<1xi8>}> : () -> tensor<1xi8>
  %input_zp = "tosa.const"() <{values = dense<3> : tensor<1xi8>}> : () -> tensor<1xi8>
  %output_zp = "tosa.const"() <{values = dense<-3> : tensor<1xi8>}> : () -> tensor<1xi8>
  %0 = tosa.rescale %x, %multiplier, %shift, %input_zp, %output_zp {input_unsigned = true, output_unsigned = false,
    per_channel = false, rounding_mode = SINGLE_ROUND, scale32 = true}
    : (tensor<4x!quant.uniform<u8:f32, 0.5:3>>, tensor<1xi32>, tensor<1xi8>, tensor<1xi8>, tensor<1xi8>)
      -> tensor<4x!quant.uniform<i8:f32, 0.25:-3>>
  return %0 : tensor<4x!quant.uniform<i8:f32, 0.25:-3>>
}

// Ops of other dialects go along.

// CHECK-LABEL: func.func @mixed(
// CHECK-NEXT: %0 = "qnn.clip"(%arg0)
// CHECK-NEXT: %1 = "qnn.clip"(%0) {max = 5 : i64, min = -128 : i64}
// CHECK-NEXT: return %1
func.func @mixed(%x: tensor<4xi8>) -> tensor<4xi8> {
  %0 = "qnn.clip"(%x) {max = 9 : i64, min = 0 : i64} : (tensor<4xi8>) -> tensor<4xi8>
  %1 = tosa.identity %0 : (tensor<4xi8>) -> tensor<4xi8>
  %2 = tosa.clamp %1 {min_val = -128 : i8, max_val = 5 : i8} : (tensor<4xi8>) -> tensor<4xi8>
  return %2 : tensor<4xi8>
}

// Floats become upstream ops, which one kernel computes; integers of no quantization too.

// CHECK-LABEL: func.func @floats(
// CHECK: %[[WIDE:.*]] = arith.sitofp %arg0
// CHECK: math.exp
// CHECK: arith.fptosi
// CHECK: arith.trunci
func.func @floats(%x: tensor<4xi8>) -> tensor<4xi8> {
  %0 = tosa.cast %x : (tensor<4xi8>) -> tensor<4xf32>
  %1 = tosa.exp %0 : (tensor<4xf32>) -> tensor<4xf32>
  %2 = tosa.cast %1 : (tensor<4xf32>) -> tensor<4xi8>
  return %2 : tensor<4xi8>
}

// A short multiplier that is rounded twice is one of 64-bit integers.

// CHECK-LABEL: func.func @second_nudge_of_a_short_multiplier(
// CHECK: arith.muli
// CHECK: arith.shrsi
// CHECK-NOT: qnn.requantize
func.func @second_nudge_of_a_short_multiplier(%x: tensor<4xi32>) -> tensor<4xi8> {
  %multiplier = "tosa.const"() <{values = dense<1000> : tensor<1xi32>}> : () -> tensor<1xi32>
  %shift = "tosa.const"() <{values = dense<32> : tensor<1xi8>}> : () -> tensor<1xi8>
  %input_zp = "tosa.const"() <{values = dense<0> : tensor<1xi32>}> : () -> tensor<1xi32>
  %output_zp = "tosa.const"() <{values = dense<0> : tensor<1xi8>}> : () -> tensor<1xi8>
  %0 = tosa.rescale %x, %multiplier, %shift, %input_zp, %output_zp {input_unsigned = false, output_unsigned = false,
    per_channel = false, rounding_mode = DOUBLE_ROUND, scale32 = true}
    : (tensor<4xi32>, tensor<1xi32>, tensor<1xi8>, tensor<1xi32>, tensor<1xi8>) -> tensor<4xi8>
  return %0 : tensor<4xi8>
}
