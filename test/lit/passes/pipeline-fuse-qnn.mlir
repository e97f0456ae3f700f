// RUN: %qopt %s --fuse-qnn | filecheck %s

// One fused op for each kernel, whatever stands around the contraction.

// R1: conv, requantize and sigmoid are one op that carries the table.
// CHECK-LABEL: func.func @table(
// CHECK-NOT: qnn.lut
// CHECK: qnn.fused_conv2d
// CHECK-SAME: table = dense<
// CHECK-NEXT: return
func.func @table(%arg0: tensor<1x4x4x2xui8>) -> tensor<1x4x4x2xui8> {
  %0 = "qnn.constant"() {value = dense<3> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  %1 = "qnn.conv2d"(%arg0, %0) {
    dilation = array<i64: 1, 1>, groups = 1 : i64, input_scale = 0.25 : f64, input_zero_point = 3 : i64,
    padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>, weight_scales = array<f64: 0.5, 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<1x4x4x2xui8>, tensor<2x1x1x2xi8>) -> tensor<1x4x4x2xi32>
  %2 = "qnn.requantize"(%1) {
    axis = 3 : i64, input_scale = 0.25 : f64, input_zero_points = array<i64: 0>, multiplier = "f64",
    output_scale = 0.5 : f64, output_zero_point = 10 : i64, rounding = "fixed64_up",
    weight_scales = array<f64: 0.5, 0.25>
  } : (tensor<1x4x4x2xi32>) -> tensor<1x4x4x2xui8>
  %3 = "qnn.sigmoid"(%2) {
    entries = "half_away_divide", input_scale = 0.5 : f64, input_zero_point = 10 : i64, nan = "max",
    output_scale = 0.00390625 : f64, output_zero_point = 0 : i64
  } : (tensor<1x4x4x2xui8>) -> tensor<1x4x4x2xui8>
  return %3 : tensor<1x4x4x2xui8>
}

// R3: the boundary of a conv with a fixed-point leaky_relu is 8-bit.
// CHECK-LABEL: func.func @leaky(
// CHECK-NOT: i32> loc
// CHECK: qnn.fused_conv2d
// CHECK-SAME: table = dense<
// CHECK-SAME: -> tensor<1x4x4x2xi8>
// CHECK-NEXT: return
func.func @leaky(%arg0: tensor<1x4x4x2xui8>) -> tensor<1x4x4x2xi8> {
  %0 = "qnn.constant"() {value = dense<3> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  %1 = "qnn.conv2d"(%arg0, %0) {
    dilation = array<i64: 1, 1>, groups = 1 : i64, input_scale = 0.25 : f64, input_zero_point = 3 : i64,
    padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>, weight_scales = array<f64: 0.5, 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<1x4x4x2xui8>, tensor<2x1x1x2xi8>) -> tensor<1x4x4x2xi32>
  %2 = "qnn.requantize"(%1) {
    axis = 3 : i64, input_scale = 0.25 : f64, input_zero_points = array<i64: 0>, multiplier = "f64",
    output_scale = 0.5 : f64, output_zero_point = 10 : i64, rounding = "fixed64_up",
    weight_scales = array<f64: 0.5, 0.25>
  } : (tensor<1x4x4x2xi32>) -> tensor<1x4x4x2xi8>
  %3 = "qnn.leaky_relu"(%2) {
    alpha = 0.01 : f64, entries = "half_away_divide", input_scale = 0.5 : f64, input_zero_point = 10 : i64,
    mode = "fixed", nan = "max", output_scale = 0.25 : f64, output_zero_point = -20 : i64
  } : (tensor<1x4x4x2xi8>) -> tensor<1x4x4x2xi8>
  return %3 : tensor<1x4x4x2xi8>
}

// R4: the float32 region after a conv is part of it.
// CHECK-LABEL: func.func @float_region(
// CHECK-NOT: arith.
// CHECK: qnn.fused_conv2d
// CHECK-SAME: table = dense<
// CHECK-NEXT: return
func.func @float_region(%arg0: tensor<1x4x4x2xui8>) -> tensor<1x4x4x2xui8> {
  %0 = "qnn.constant"() {value = dense<3> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  %1 = "qnn.conv2d"(%arg0, %0) {
    dilation = array<i64: 1, 1>, groups = 1 : i64, input_scale = 0.25 : f64, input_zero_point = 3 : i64,
    padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>, weight_scales = array<f64: 0.5, 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<1x4x4x2xui8>, tensor<2x1x1x2xi8>) -> tensor<1x4x4x2xi32>
  %2 = "qnn.requantize"(%1) {
    axis = 3 : i64, input_scale = 0.25 : f64, input_zero_points = array<i64: 0>, multiplier = "f64",
    output_scale = 0.5 : f64, output_zero_point = 10 : i64, rounding = "fixed64_up",
    weight_scales = array<f64: 0.5, 0.25>
  } : (tensor<1x4x4x2xi32>) -> tensor<1x4x4x2xui8>
  %3 = "qnn.dequantize"(%2) {
    axis = 0 : i64, scales = array<f64: 0.5>, zero_points = array<i64: 10>
  } : (tensor<1x4x4x2xui8>) -> tensor<1x4x4x2xf32>
  %4 = "qnn.constant"() {value = dense<0.5> : tensor<1x4x4x2xf32>} : () -> tensor<1x4x4x2xf32>
  %5 = arith.mulf %3, %4 : tensor<1x4x4x2xf32>
  %6 = "qnn.quantize"(%5) {
    axis = 0 : i64, nan = "zero_point", rounding = "half_even", scales = array<f64: 0.25>, scaling = "divide",
    zero_points = array<i64: 100>
  } : (tensor<1x4x4x2xf32>) -> tensor<1x4x4x2xui8>
  return %6 : tensor<1x4x4x2xui8>
}

// The diamond x * sigmoid(x) is one table.
// CHECK-LABEL: func.func @swish(
// CHECK-NOT: qnn.mul
// CHECK: qnn.fused_conv2d
// CHECK-SAME: table = dense<
// CHECK-NEXT: return
func.func @swish(%arg0: tensor<1x4x4x2xui8>) -> tensor<1x4x4x2xui8> {
  %0 = "qnn.constant"() {value = dense<3> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  %1 = "qnn.conv2d"(%arg0, %0) {
    dilation = array<i64: 1, 1>, groups = 1 : i64, input_scale = 0.25 : f64, input_zero_point = 3 : i64,
    padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>, weight_scales = array<f64: 0.5, 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<1x4x4x2xui8>, tensor<2x1x1x2xi8>) -> tensor<1x4x4x2xi32>
  %2 = "qnn.requantize"(%1) {
    axis = 3 : i64, input_scale = 0.25 : f64, input_zero_points = array<i64: 0>, multiplier = "f64",
    output_scale = 0.5 : f64, output_zero_point = 10 : i64, rounding = "fixed64_up",
    weight_scales = array<f64: 0.5, 0.25>
  } : (tensor<1x4x4x2xi32>) -> tensor<1x4x4x2xui8>
  %3 = "qnn.sigmoid"(%2) {
    entries = "half_away_divide", input_scale = 0.5 : f64, input_zero_point = 10 : i64, nan = "max",
    output_scale = 0.00390625 : f64, output_zero_point = 0 : i64
  } : (tensor<1x4x4x2xui8>) -> tensor<1x4x4x2xui8>
  %4 = "qnn.mul"(%2, %3) {
    lhs_scale = 0.5 : f64, lhs_zero_point = 10 : i64, multiplier = "f64", output_max = 255 : i64,
    output_min = 0 : i64, output_scale = 0.5 : f64, output_zero_point = 10 : i64, rhs_scale = 0.00390625 : f64,
    rhs_zero_point = 0 : i64, rounding = "f32_rne_zp_last"
  } : (tensor<1x4x4x2xui8>, tensor<1x4x4x2xui8>) -> tensor<1x4x4x2xui8>
  return %4 : tensor<1x4x4x2xui8>
}

// R5: of a network in planes, transposes remain at the edges alone.
// CHECK-LABEL: func.func @planes(
// CHECK: qnn.transpose
// CHECK: qnn.fused_conv2d
// CHECK-NOT: qnn.transpose
// CHECK: qnn.fused_conv2d
// CHECK-NEXT: {{.*}}qnn.transpose
// CHECK-NEXT: return
func.func @planes(%arg0: tensor<1x2x4x4xui8>) -> tensor<1x2x4x4xui8> {
  %0 = "qnn.transpose"(%arg0) {permutation = array<i64: 0, 2, 3, 1>} : (tensor<1x2x4x4xui8>) -> tensor<1x4x4x2xui8>
  %1 = "qnn.constant"() {value = dense<3> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  %2 = "qnn.conv2d"(%0, %1) {
    dilation = array<i64: 1, 1>, groups = 1 : i64, input_scale = 0.25 : f64, input_zero_point = 3 : i64,
    padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>, weight_scales = array<f64: 0.5, 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<1x4x4x2xui8>, tensor<2x1x1x2xi8>) -> tensor<1x4x4x2xi32>
  %3 = "qnn.transpose"(%2) {permutation = array<i64: 0, 3, 1, 2>} : (tensor<1x4x4x2xi32>) -> tensor<1x2x4x4xi32>
  %4 = "qnn.requantize"(%3) {
    axis = 1 : i64, input_scale = 0.25 : f64, input_zero_points = array<i64: 0>, multiplier = "f64",
    output_scale = 0.5 : f64, output_zero_point = 10 : i64, rounding = "fixed64_up",
    weight_scales = array<f64: 0.5, 0.25>
  } : (tensor<1x2x4x4xi32>) -> tensor<1x2x4x4xui8>
  %5 = "qnn.sigmoid"(%4) {
    entries = "half_away_divide", input_scale = 0.5 : f64, input_zero_point = 10 : i64, nan = "max",
    output_scale = 0.25 : f64, output_zero_point = 3 : i64
  } : (tensor<1x2x4x4xui8>) -> tensor<1x2x4x4xui8>
  %6 = "qnn.transpose"(%5) {permutation = array<i64: 0, 2, 3, 1>} : (tensor<1x2x4x4xui8>) -> tensor<1x4x4x2xui8>
  %7 = "qnn.constant"() {value = dense<3> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  %8 = "qnn.conv2d"(%6, %7) {
    dilation = array<i64: 1, 1>, groups = 1 : i64, input_scale = 0.25 : f64, input_zero_point = 3 : i64,
    padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>, weight_scales = array<f64: 0.5, 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<1x4x4x2xui8>, tensor<2x1x1x2xi8>) -> tensor<1x4x4x2xi32>
  %9 = "qnn.transpose"(%8) {permutation = array<i64: 0, 3, 1, 2>} : (tensor<1x4x4x2xi32>) -> tensor<1x2x4x4xi32>
  %10 = "qnn.requantize"(%9) {
    axis = 1 : i64, input_scale = 0.25 : f64, input_zero_points = array<i64: 0>, multiplier = "f64",
    output_scale = 0.5 : f64, output_zero_point = 10 : i64, rounding = "fixed64_up",
    weight_scales = array<f64: 0.5, 0.25>
  } : (tensor<1x2x4x4xi32>) -> tensor<1x2x4x4xui8>
  %11 = "qnn.sigmoid"(%10) {
    entries = "half_away_divide", input_scale = 0.5 : f64, input_zero_point = 10 : i64, nan = "max",
    output_scale = 0.00390625 : f64, output_zero_point = 0 : i64
  } : (tensor<1x2x4x4xui8>) -> tensor<1x2x4x4xui8>
  return %11 : tensor<1x2x4x4xui8>
}

// R6, R7: depthwise and pointwise convs in a chain; every tensor from kernel to kernel is 8-bit.
// CHECK-LABEL: func.func @mobilenet(
// CHECK-NOT: i16
// CHECK-COUNT-3: "qnn.fused_conv2d"({{.*}}{clamp = {max = 240 : i64, min = 3 : i64}}]{{.*}} -> tensor<1x4x4x2xui8>
// CHECK-NEXT: return
func.func @mobilenet(%arg0: tensor<1x4x4x2xui8>) -> tensor<1x4x4x2xui8> {
  %0 = "qnn.constant"() {value = dense<2> : tensor<2x3x3x1xi8>} : () -> tensor<2x3x3x1xi8>
  %1 = "qnn.conv2d"(%arg0, %0) {
    dilation = array<i64: 1, 1>, groups = 2 : i64, input_scale = 0.25 : f64, input_zero_point = 3 : i64,
    padding = array<i64: 1, 1, 1, 1>, strides = array<i64: 1, 1>, weight_scales = array<f64: 0.5>,
    weight_zero_points = array<i64: 0>
  } : (tensor<1x4x4x2xui8>, tensor<2x3x3x1xi8>) -> tensor<1x4x4x2xi32>
  %2 = "qnn.requantize"(%1) {
    axis = 3 : i64, input_scale = 0.25 : f64, input_zero_points = array<i64: 0>, multiplier = "f64",
    output_scale = 0.25 : f64, output_zero_point = 3 : i64, rounding = "fixed64_up",
    weight_scales = array<f64: 0.5>
  } : (tensor<1x4x4x2xi32>) -> tensor<1x4x4x2xui8>
  %3 = "qnn.clip"(%2) {max = 240 : i64, min = 3 : i64} : (tensor<1x4x4x2xui8>) -> tensor<1x4x4x2xui8>
  %4 = "qnn.constant"() {value = dense<2> : tensor<2x3x3x1xi8>} : () -> tensor<2x3x3x1xi8>
  %5 = "qnn.conv2d"(%3, %4) {
    dilation = array<i64: 1, 1>, groups = 2 : i64, input_scale = 0.25 : f64, input_zero_point = 3 : i64,
    padding = array<i64: 1, 1, 1, 1>, strides = array<i64: 1, 1>, weight_scales = array<f64: 0.5>,
    weight_zero_points = array<i64: 0>
  } : (tensor<1x4x4x2xui8>, tensor<2x3x3x1xi8>) -> tensor<1x4x4x2xi32>
  %6 = "qnn.requantize"(%5) {
    axis = 3 : i64, input_scale = 0.25 : f64, input_zero_points = array<i64: 0>, multiplier = "f64",
    output_scale = 0.25 : f64, output_zero_point = 3 : i64, rounding = "fixed64_up",
    weight_scales = array<f64: 0.5>
  } : (tensor<1x4x4x2xi32>) -> tensor<1x4x4x2xui8>
  %7 = "qnn.clip"(%6) {max = 240 : i64, min = 3 : i64} : (tensor<1x4x4x2xui8>) -> tensor<1x4x4x2xui8>
  %8 = "qnn.constant"() {value = dense<3> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  %9 = "qnn.conv2d"(%7, %8) {
    dilation = array<i64: 1, 1>, groups = 1 : i64, input_scale = 0.25 : f64, input_zero_point = 3 : i64,
    padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>, weight_scales = array<f64: 0.5, 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<1x4x4x2xui8>, tensor<2x1x1x2xi8>) -> tensor<1x4x4x2xi32>
  %10 = "qnn.requantize"(%9) {
    axis = 3 : i64, input_scale = 0.25 : f64, input_zero_points = array<i64: 0>, multiplier = "f64",
    output_scale = 0.25 : f64, output_zero_point = 3 : i64, rounding = "fixed64_up",
    weight_scales = array<f64: 0.5, 0.25>
  } : (tensor<1x4x4x2xi32>) -> tensor<1x4x4x2xui8>
  %11 = "qnn.clip"(%10) {max = 240 : i64, min = 3 : i64} : (tensor<1x4x4x2xui8>) -> tensor<1x4x4x2xui8>
  return %11 : tensor<1x4x4x2xui8>
}

// N6: the sum and its relu are stages of the conv.
// CHECK-LABEL: func.func @residual(
// CHECK-NOT: "qnn.add"
// CHECK-NOT: qnn.relu
// CHECK: "qnn.fused_conv2d"(%arg0, {{.*}}, %arg1)
// CHECK-SAME: {clamp = {max = 255 : i64, min = 20 : i64}}]
// CHECK-NEXT: return
func.func @residual(%arg0: tensor<1x4x4x2xui8>, %arg1: tensor<1x4x4x2xui8>) -> tensor<1x4x4x2xui8> {
  %0 = "qnn.constant"() {value = dense<3> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  %1 = "qnn.conv2d"(%arg0, %0) {
    dilation = array<i64: 1, 1>, groups = 1 : i64, input_scale = 0.25 : f64, input_zero_point = 3 : i64,
    padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>, weight_scales = array<f64: 0.5, 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<1x4x4x2xui8>, tensor<2x1x1x2xi8>) -> tensor<1x4x4x2xi32>
  %2 = "qnn.requantize"(%1) {
    axis = 3 : i64, input_scale = 0.25 : f64, input_zero_points = array<i64: 0>, multiplier = "f64",
    output_scale = 0.5 : f64, output_zero_point = 10 : i64, rounding = "fixed64_up",
    weight_scales = array<f64: 0.5, 0.25>
  } : (tensor<1x4x4x2xi32>) -> tensor<1x4x4x2xui8>
  %3 = "qnn.add"(%2, %arg1) {
    arithmetic = "requantize_each", lhs_scale = 0.5 : f64, lhs_zero_point = 10 : i64, multiplier = "f64",
    output_max = 255 : i64, output_min = 0 : i64, output_scale = 1.0 : f64, output_zero_point = 20 : i64,
    rhs_scale = 0.5 : f64, rhs_zero_point = 10 : i64, rounding = "fixed64_up"
  } : (tensor<1x4x4x2xui8>, tensor<1x4x4x2xui8>) -> tensor<1x4x4x2xui8>
  %4 = "qnn.relu"(%3) {
    entries = "half_away_divide", input_scale = 1.0 : f64, input_zero_point = 20 : i64, nan = "max",
    output_scale = 1.0 : f64, output_zero_point = 20 : i64
  } : (tensor<1x4x4x2xui8>) -> tensor<1x4x4x2xui8>
  return %4 : tensor<1x4x4x2xui8>
}

// R12: pad, bias, requantize, relu6, residual, clip and table at once.
// CHECK-LABEL: func.func @everything(
// CHECK: dense<[100, -7]>
// CHECK: "qnn.fused_conv2d"(%arg0, {{.*}}, %arg1)
// CHECK-SAME: {clamp = {max = 22 : i64, min = 10 : i64}}, {add = {
// CHECK-SAME: {lut = {table = dense<
// CHECK-SAME: padding = array<i64: 1, 1, 0, 0>
// CHECK-NEXT: return
func.func @everything(%arg0: tensor<1x4x4x2xui8>, %arg1: tensor<1x4x4x2xui8>) -> tensor<1x4x4x2xui8> {
  %0 = "qnn.pad"(%arg0) {
    high = array<i64: 0, 0, 0, 0>, low = array<i64: 0, 1, 1, 0>, value = 3 : i64
  } : (tensor<1x4x4x2xui8>) -> tensor<1x5x5x2xui8>
  %1 = "qnn.constant"() {value = dense<3> : tensor<2x2x2x2xi8>} : () -> tensor<2x2x2x2xi8>
  %2 = "qnn.conv2d"(%0, %1) {
    dilation = array<i64: 1, 1>, groups = 1 : i64, input_scale = 0.25 : f64, input_zero_point = 3 : i64,
    padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>, weight_scales = array<f64: 0.5, 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<1x5x5x2xui8>, tensor<2x2x2x2xi8>) -> tensor<1x4x4x2xi32>
  %3 = "qnn.constant"() {
    value = dense<[[[[100, -7], [100, -7], [100, -7], [100, -7]], [[100, -7], [100, -7], [100, -7], [100, -7]], [[100, -7], [100, -7], [100, -7], [100, -7]], [[100, -7], [100, -7], [100, -7], [100, -7]]]]> : tensor<1x4x4x2xi32>
  } : () -> tensor<1x4x4x2xi32>
  %4 = arith.addi %2, %3 : tensor<1x4x4x2xi32>
  %5 = "qnn.requantize"(%4) {
    axis = 3 : i64, input_scale = 0.25 : f64, input_zero_points = array<i64: 0>, multiplier = "f64",
    output_scale = 0.5 : f64, output_zero_point = 10 : i64, rounding = "fixed64_up",
    weight_scales = array<f64: 0.5, 0.25>
  } : (tensor<1x4x4x2xi32>) -> tensor<1x4x4x2xui8>
  %6 = "qnn.relu6"(%5) {
    entries = "half_away_divide", input_scale = 0.5 : f64, input_zero_point = 10 : i64, nan = "max",
    output_scale = 0.5 : f64, output_zero_point = 10 : i64
  } : (tensor<1x4x4x2xui8>) -> tensor<1x4x4x2xui8>
  %7 = "qnn.add"(%6, %arg1) {
    arithmetic = "requantize_each", lhs_scale = 0.5 : f64, lhs_zero_point = 10 : i64, multiplier = "f64",
    output_max = 255 : i64, output_min = 0 : i64, output_scale = 0.5 : f64, output_zero_point = 10 : i64,
    rhs_scale = 0.5 : f64, rhs_zero_point = 10 : i64, rounding = "fixed64_up"
  } : (tensor<1x4x4x2xui8>, tensor<1x4x4x2xui8>) -> tensor<1x4x4x2xui8>
  %8 = "qnn.clip"(%7) {max = 99 : i64, min = 12 : i64} : (tensor<1x4x4x2xui8>) -> tensor<1x4x4x2xui8>
  %9 = "qnn.lut"(%8) {
    input_scale = 0.5 : f64, input_zero_point = 10 : i64, output_scale = 0.125 : f64,
    output_zero_point = 11 : i64,
    table = dense<"0xFFFEFDFCFBFAF9F8F7F6F5F4F3F2F1F0EFEEEDECEBEAE9E8E7E6E5E4E3E2E1E0DFDEDDDCDBDAD9D8D7D6D5D4D3D2D1D0CFCECDCCCBCAC9C8C7C6C5C4C3C2C1C0BFBEBDBCBBBAB9B8B7B6B5B4B3B2B1B0AFAEADACABAAA9A8A7A6A5A4A3A2A1A09F9E9D9C9B9A999897969594939291908F8E8D8C8B8A898887868584838281807F7E7D7C7B7A797877767574737271706F6E6D6C6B6A696867666564636261605F5E5D5C5B5A595857565554535251504F4E4D4C4B4A494847464544434241403F3E3D3C3B3A393837363534333231302F2E2D2C2B2A292827262524232221201F1E1D1C1B1A191817161514131211100F0E0D0C0B0A09080706050403020100"> : tensor<256xi8>
  } : (tensor<1x4x4x2xui8>) -> tensor<1x4x4x2xui8>
  return %9 : tensor<1x4x4x2xui8>
}
