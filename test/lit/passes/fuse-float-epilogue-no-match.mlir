// RUN: %qopt %s --qnn-fuse-float-epilogue --explain-matches --verify-diagnostics
// RUN: %qopt %s --qnn-fuse-float-epilogue | filecheck %s

// CHECK-LABEL: func.func @unknown_chain(
// CHECK-NOT: qnn.fused_conv2d
// CHECK: return
func.func @unknown_chain(%arg0: tensor<1x2x2x2xui8>) -> tensor<1x2x2x2xui8> {
  %0 = "qnn.constant"() {value = dense<3> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  %1 = "qnn.conv2d"(%arg0, %0) {
    dilation = array<i64: 1, 1>, groups = 1 : i64, input_scale = 2.500000e-01 : f64, input_zero_point = 3 : i64,
    padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>, weight_scales = array<f64: 5.000000e-01,
    2.500000e-01>, weight_zero_points = array<i64: 0>
  } : (tensor<1x2x2x2xui8>, tensor<2x1x1x2xi8>) -> tensor<1x2x2x2xi32>
  %2 = "qnn.dequantize"(%1) {
    axis = 3 : i64, scales = array<f64: 1.250000e-01, 6.250000e-02>, zero_points = array<i64: 0>
  } : (tensor<1x2x2x2xi32>) -> tensor<1x2x2x2xf32>
  %3 = arith.mulf %2, %2 : tensor<1x2x2x2xf32>
  // expected-remark @+1 {{[fuse-float-epilogue] 'qnn.quantize' must be a known activation of sums of dequantized accumulators, but there is 'arith.mulf'}}
  %4 = "qnn.quantize"(%3) {
    axis = 0 : i64, nan = "zero_point", rounding = "half_even", scales = array<f64: 5.000000e-02>, scaling =
    "reciprocal", zero_points = array<i64: 7>
  } : (tensor<1x2x2x2xf32>) -> tensor<1x2x2x2xui8>
  return %4 : tensor<1x2x2x2xui8>
}

// CHECK-LABEL: func.func @second_use_of_a_step(
// CHECK-NOT: qnn.fused_conv2d
// CHECK: return
func.func @second_use_of_a_step(%arg0: tensor<1x2x2x2xui8>) -> (tensor<1x2x2x2xui8>, tensor<1x2x2x2xf32>) {
  %0 = "qnn.constant"() {value = dense<3> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  %1 = "qnn.conv2d"(%arg0, %0) {
    dilation = array<i64: 1, 1>, groups = 1 : i64, input_scale = 2.500000e-01 : f64, input_zero_point = 3 : i64,
    padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>, weight_scales = array<f64: 5.000000e-01,
    2.500000e-01>, weight_zero_points = array<i64: 0>
  } : (tensor<1x2x2x2xui8>, tensor<2x1x1x2xi8>) -> tensor<1x2x2x2xi32>
  %2 = "qnn.dequantize"(%1) {
    axis = 3 : i64, scales = array<f64: 1.250000e-01, 6.250000e-02>, zero_points = array<i64: 0>
  } : (tensor<1x2x2x2xi32>) -> tensor<1x2x2x2xf32>
  %3 = math.tanh %2 : tensor<1x2x2x2xf32>
  // expected-remark @+1 {{[fuse-float-epilogue] 'qnn.quantize' must use the ops of its tanh alone, but another op uses one of them}}
  %4 = "qnn.quantize"(%3) {
    axis = 0 : i64, nan = "zero_point", rounding = "half_even", scales = array<f64: 5.000000e-02>, scaling =
    "reciprocal", zero_points = array<i64: 7>
  } : (tensor<1x2x2x2xf32>) -> tensor<1x2x2x2xui8>
  return %4, %2 : tensor<1x2x2x2xui8>, tensor<1x2x2x2xf32>
}

// CHECK-LABEL: func.func @second_use_of_accumulators(
// CHECK-NOT: qnn.fused_conv2d
// CHECK: return
func.func @second_use_of_accumulators(%arg0: tensor<1x2x2x2xui8>) -> (tensor<1x2x2x2xui8>, tensor<1x2x2x2xi32>) {
  %0 = "qnn.constant"() {value = dense<3> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  %1 = "qnn.conv2d"(%arg0, %0) {
    dilation = array<i64: 1, 1>, groups = 1 : i64, input_scale = 2.500000e-01 : f64, input_zero_point = 3 : i64,
    padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>, weight_scales = array<f64: 5.000000e-01,
    2.500000e-01>, weight_zero_points = array<i64: 0>
  } : (tensor<1x2x2x2xui8>, tensor<2x1x1x2xi8>) -> tensor<1x2x2x2xi32>
  %2 = "qnn.dequantize"(%1) {
    axis = 3 : i64, scales = array<f64: 1.250000e-01, 6.250000e-02>, zero_points = array<i64: 0>
  } : (tensor<1x2x2x2xi32>) -> tensor<1x2x2x2xf32>
  // expected-remark @+1 {{[fuse-float-epilogue] 'qnn.quantize' needs the result of 'qnn.conv2d' alone, but it has 2 uses}}
  %3 = "qnn.quantize"(%2) {
    axis = 0 : i64, nan = "zero_point", rounding = "half_even", scales = array<f64: 5.000000e-02>, scaling =
    "reciprocal", zero_points = array<i64: 7>
  } : (tensor<1x2x2x2xf32>) -> tensor<1x2x2x2xui8>
  return %3, %1 : tensor<1x2x2x2xui8>, tensor<1x2x2x2xi32>
}

// CHECK-LABEL: func.func @other_rounding(
// CHECK-NOT: qnn.fused_conv2d
// CHECK: return
func.func @other_rounding(%arg0: tensor<1x2x2x2xui8>) -> tensor<1x2x2x2xui8> {
  %0 = "qnn.constant"() {value = dense<3> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  %1 = "qnn.conv2d"(%arg0, %0) {
    dilation = array<i64: 1, 1>, groups = 1 : i64, input_scale = 2.500000e-01 : f64, input_zero_point = 3 : i64,
    padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>, weight_scales = array<f64: 5.000000e-01,
    2.500000e-01>, weight_zero_points = array<i64: 0>
  } : (tensor<1x2x2x2xui8>, tensor<2x1x1x2xi8>) -> tensor<1x2x2x2xi32>
  %2 = "qnn.dequantize"(%1) {
    axis = 3 : i64, scales = array<f64: 1.250000e-01, 6.250000e-02>, zero_points = array<i64: 0>
  } : (tensor<1x2x2x2xi32>) -> tensor<1x2x2x2xf32>
  // expected-remark @+1 {{[fuse-float-epilogue] 'qnn.quantize' rounding must be half_even, but got half_away}}
  %3 = "qnn.quantize"(%2) {
    axis = 0 : i64, nan = "zero_point", rounding = "half_away", scales = array<f64: 5.000000e-02>, scaling =
    "reciprocal", zero_points = array<i64: 7>
  } : (tensor<1x2x2x2xf32>) -> tensor<1x2x2x2xui8>
  return %3 : tensor<1x2x2x2xui8>
}

// CHECK-LABEL: func.func @wide_result(
// CHECK-NOT: qnn.fused_conv2d
// CHECK: return
func.func @wide_result(%arg0: tensor<1x2x2x2xui8>) -> tensor<1x2x2x2xi16> {
  %0 = "qnn.constant"() {value = dense<3> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  %1 = "qnn.conv2d"(%arg0, %0) {
    dilation = array<i64: 1, 1>, groups = 1 : i64, input_scale = 2.500000e-01 : f64, input_zero_point = 3 : i64,
    padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>, weight_scales = array<f64: 5.000000e-01,
    2.500000e-01>, weight_zero_points = array<i64: 0>
  } : (tensor<1x2x2x2xui8>, tensor<2x1x1x2xi8>) -> tensor<1x2x2x2xi32>
  %2 = "qnn.dequantize"(%1) {
    axis = 3 : i64, scales = array<f64: 1.250000e-01, 6.250000e-02>, zero_points = array<i64: 0>
  } : (tensor<1x2x2x2xi32>) -> tensor<1x2x2x2xf32>
  // expected-remark @+1 {{[fuse-float-epilogue] 'qnn.quantize' must have an 8-bit result, but got i16}}
  %3 = "qnn.quantize"(%2) {
    axis = 0 : i64, nan = "zero_point", rounding = "half_even", scales = array<f64: 5.000000e-02>, scaling =
    "reciprocal", zero_points = array<i64: 7>
  } : (tensor<1x2x2x2xf32>) -> tensor<1x2x2x2xi16>
  return %3 : tensor<1x2x2x2xi16>
}

// CHECK-LABEL: func.func @scale_by_channel(
// CHECK-NOT: qnn.fused_conv2d
// CHECK: return
func.func @scale_by_channel(%arg0: tensor<1x2x2x2xui8>) -> tensor<1x2x2x2xui8> {
  %0 = "qnn.constant"() {value = dense<3> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  %1 = "qnn.conv2d"(%arg0, %0) {
    dilation = array<i64: 1, 1>, groups = 1 : i64, input_scale = 2.500000e-01 : f64, input_zero_point = 3 : i64,
    padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>, weight_scales = array<f64: 5.000000e-01,
    2.500000e-01>, weight_zero_points = array<i64: 0>
  } : (tensor<1x2x2x2xui8>, tensor<2x1x1x2xi8>) -> tensor<1x2x2x2xi32>
  %2 = "qnn.dequantize"(%1) {
    axis = 3 : i64, scales = array<f64: 1.250000e-01, 6.250000e-02>, zero_points = array<i64: 0>
  } : (tensor<1x2x2x2xi32>) -> tensor<1x2x2x2xf32>
  // expected-remark @+1 {{[fuse-float-epilogue] 'qnn.quantize' must have one scale and one zero point}}
  %3 = "qnn.quantize"(%2) {
    axis = 3 : i64, nan = "zero_point", rounding = "half_even", scales = array<f64: 5.000000e-02, 1.000000e-01>,
    scaling = "reciprocal", zero_points = array<i64: 7>
  } : (tensor<1x2x2x2xf32>) -> tensor<1x2x2x2xui8>
  return %3 : tensor<1x2x2x2xui8>
}

// CHECK-LABEL: func.func @tiny_scale(
// CHECK-NOT: qnn.fused_conv2d
// CHECK: return
func.func @tiny_scale(%arg0: tensor<1x2x2x2xui8>) -> tensor<1x2x2x2xui8> {
  %0 = "qnn.constant"() {value = dense<3> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  %1 = "qnn.conv2d"(%arg0, %0) {
    dilation = array<i64: 1, 1>, groups = 1 : i64, input_scale = 2.500000e-01 : f64, input_zero_point = 3 : i64,
    padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>, weight_scales = array<f64: 5.000000e-01,
    2.500000e-01>, weight_zero_points = array<i64: 0>
  } : (tensor<1x2x2x2xui8>, tensor<2x1x1x2xi8>) -> tensor<1x2x2x2xi32>
  %2 = "qnn.dequantize"(%1) {
    axis = 3 : i64, scales = array<f64: 1.250000e-01, 6.250000e-02>, zero_points = array<i64: 0>
  } : (tensor<1x2x2x2xi32>) -> tensor<1x2x2x2xf32>
  // expected-remark @+1 {{[fuse-float-epilogue] 'qnn.quantize' must have a scale of at least 2^-60, but got 8.470329472543003e-22}}
  %3 = "qnn.quantize"(%2) {
    axis = 0 : i64, nan = "zero_point", rounding = "half_even", scales = array<f64: 8.4703294725430034E-22>,
    scaling = "reciprocal", zero_points = array<i64: 7>
  } : (tensor<1x2x2x2xf32>) -> tensor<1x2x2x2xui8>
  return %3 : tensor<1x2x2x2xui8>
}

// CHECK-LABEL: func.func @other_scales(
// CHECK-NOT: qnn.fused_conv2d
// CHECK: return
func.func @other_scales(%arg0: tensor<1x2x2x2xui8>) -> tensor<1x2x2x2xui8> {
  %0 = "qnn.constant"() {value = dense<3> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  %1 = "qnn.conv2d"(%arg0, %0) {
    dilation = array<i64: 1, 1>, groups = 1 : i64, input_scale = 2.500000e-01 : f64, input_zero_point = 3 : i64,
    padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>, weight_scales = array<f64: 5.000000e-01,
    2.500000e-01>, weight_zero_points = array<i64: 0>
  } : (tensor<1x2x2x2xui8>, tensor<2x1x1x2xi8>) -> tensor<1x2x2x2xi32>
  %2 = "qnn.dequantize"(%1) {
    axis = 3 : i64, scales = array<f64: 5.000000e-01, 2.500000e-01>, zero_points = array<i64: 0>
  } : (tensor<1x2x2x2xi32>) -> tensor<1x2x2x2xf32>
  // expected-remark @+1 {{[fuse-float-epilogue] 'qnn.quantize' must dequantize accumulators with the products of input_scale and weight_scales}}
  %3 = "qnn.quantize"(%2) {
    axis = 0 : i64, nan = "zero_point", rounding = "half_even", scales = array<f64: 5.000000e-02>, scaling =
    "reciprocal", zero_points = array<i64: 7>
  } : (tensor<1x2x2x2xf32>) -> tensor<1x2x2x2xui8>
  return %3 : tensor<1x2x2x2xui8>
}

// CHECK-LABEL: func.func @zero_point(
// CHECK-NOT: qnn.fused_conv2d
// CHECK: return
func.func @zero_point(%arg0: tensor<1x2x2x2xui8>) -> tensor<1x2x2x2xui8> {
  %0 = "qnn.constant"() {value = dense<3> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  %1 = "qnn.conv2d"(%arg0, %0) {
    dilation = array<i64: 1, 1>, groups = 1 : i64, input_scale = 2.500000e-01 : f64, input_zero_point = 3 : i64,
    padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>, weight_scales = array<f64: 5.000000e-01,
    2.500000e-01>, weight_zero_points = array<i64: 0>
  } : (tensor<1x2x2x2xui8>, tensor<2x1x1x2xi8>) -> tensor<1x2x2x2xi32>
  %2 = "qnn.dequantize"(%1) {
    axis = 3 : i64, scales = array<f64: 1.250000e-01, 6.250000e-02>, zero_points = array<i64: 1>
  } : (tensor<1x2x2x2xi32>) -> tensor<1x2x2x2xf32>
  // expected-remark @+1 {{[fuse-float-epilogue] 'qnn.quantize' must dequantize accumulators with zero point 0}}
  %3 = "qnn.quantize"(%2) {
    axis = 0 : i64, nan = "zero_point", rounding = "half_even", scales = array<f64: 5.000000e-02>, scaling =
    "reciprocal", zero_points = array<i64: 7>
  } : (tensor<1x2x2x2xf32>) -> tensor<1x2x2x2xui8>
  return %3 : tensor<1x2x2x2xui8>
}

// CHECK-LABEL: func.func @other_axis(
// CHECK-NOT: qnn.fused_conv2d
// CHECK: return
func.func @other_axis(%arg0: tensor<1x2x2x2xui8>) -> tensor<1x2x2x2xui8> {
  %0 = "qnn.constant"() {value = dense<3> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  %1 = "qnn.conv2d"(%arg0, %0) {
    dilation = array<i64: 1, 1>, groups = 1 : i64, input_scale = 2.500000e-01 : f64, input_zero_point = 3 : i64,
    padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>, weight_scales = array<f64: 5.000000e-01,
    2.500000e-01>, weight_zero_points = array<i64: 0>
  } : (tensor<1x2x2x2xui8>, tensor<2x1x1x2xi8>) -> tensor<1x2x2x2xi32>
  %2 = "qnn.dequantize"(%1) {
    axis = 1 : i64, scales = array<f64: 1.250000e-01, 6.250000e-02>, zero_points = array<i64: 0>
  } : (tensor<1x2x2x2xi32>) -> tensor<1x2x2x2xf32>
  // expected-remark @+1 {{[fuse-float-epilogue] 'qnn.quantize' must dequantize accumulators along axis 3, but got 1}}
  %3 = "qnn.quantize"(%2) {
    axis = 0 : i64, nan = "zero_point", rounding = "half_even", scales = array<f64: 5.000000e-02>, scaling =
    "reciprocal", zero_points = array<i64: 7>
  } : (tensor<1x2x2x2xf32>) -> tensor<1x2x2x2xui8>
  return %3 : tensor<1x2x2x2xui8>
}

// CHECK-LABEL: func.func @residual_before_the_bias(
// CHECK-NOT: qnn.fused_conv2d
// CHECK: return
func.func @residual_before_the_bias(%arg0: tensor<1x2x2x2xui8>, %arg1: tensor<1x2x2x2xui8>) -> tensor<1x2x2x2xui8> {
  %0 = "qnn.constant"() {value = dense<3> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  %1 = "qnn.conv2d"(%arg0, %0) {
    dilation = array<i64: 1, 1>, groups = 1 : i64, input_scale = 2.500000e-01 : f64, input_zero_point = 3 : i64,
    padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>, weight_scales = array<f64: 5.000000e-01,
    2.500000e-01>, weight_zero_points = array<i64: 0>
  } : (tensor<1x2x2x2xui8>, tensor<2x1x1x2xi8>) -> tensor<1x2x2x2xi32>
  %2 = "qnn.dequantize"(%1) {
    axis = 3 : i64, scales = array<f64: 1.250000e-01, 6.250000e-02>, zero_points = array<i64: 0>
  } : (tensor<1x2x2x2xi32>) -> tensor<1x2x2x2xf32>
  %3 = "qnn.dequantize"(%arg1) {
    axis = 0 : i64, scales = array<f64: 4.000000e-02>, zero_points = array<i64: 9>
  } : (tensor<1x2x2x2xui8>) -> tensor<1x2x2x2xf32>
  %4 = arith.addf %2, %3 : tensor<1x2x2x2xf32>
  %5 = "qnn.constant"() {value = dense<[5.000000e-01, -2.500000e-01]> : tensor<2xf32>} : () -> tensor<2xf32>
  %6 = "qnn.broadcast"(%5) {shape = array<i64: 1, 2, 2, 2>} : (tensor<2xf32>) -> tensor<1x2x2x2xf32>
  %7 = arith.addf %4, %6 : tensor<1x2x2x2xf32>
  // expected-remark @+1 {{[fuse-float-epilogue] 'qnn.quantize' must add one residual, after the bias}}
  %8 = "qnn.quantize"(%7) {
    axis = 0 : i64, nan = "zero_point", rounding = "half_even", scales = array<f64: 5.000000e-02>, scaling =
    "reciprocal", zero_points = array<i64: 7>
  } : (tensor<1x2x2x2xf32>) -> tensor<1x2x2x2xui8>
  return %8 : tensor<1x2x2x2xui8>
}

// CHECK-LABEL: func.func @residual_by_channel(
// CHECK-NOT: qnn.fused_conv2d
// CHECK: return
func.func @residual_by_channel(%arg0: tensor<1x2x2x2xui8>, %arg1: tensor<1x2x2x2xui8>) -> tensor<1x2x2x2xui8> {
  %0 = "qnn.constant"() {value = dense<3> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  %1 = "qnn.conv2d"(%arg0, %0) {
    dilation = array<i64: 1, 1>, groups = 1 : i64, input_scale = 2.500000e-01 : f64, input_zero_point = 3 : i64,
    padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>, weight_scales = array<f64: 5.000000e-01,
    2.500000e-01>, weight_zero_points = array<i64: 0>
  } : (tensor<1x2x2x2xui8>, tensor<2x1x1x2xi8>) -> tensor<1x2x2x2xi32>
  %2 = "qnn.dequantize"(%1) {
    axis = 3 : i64, scales = array<f64: 1.250000e-01, 6.250000e-02>, zero_points = array<i64: 0>
  } : (tensor<1x2x2x2xi32>) -> tensor<1x2x2x2xf32>
  %3 = "qnn.dequantize"(%arg1) {
    axis = 3 : i64, scales = array<f64: 4.000000e-02, 2.000000e-02>, zero_points = array<i64: 9>
  } : (tensor<1x2x2x2xui8>) -> tensor<1x2x2x2xf32>
  %4 = arith.addf %2, %3 : tensor<1x2x2x2xf32>
  // expected-remark @+1 {{[fuse-float-epilogue] 'qnn.quantize' must add a residual with one zero point and one scale of at least 2^-60}}
  %5 = "qnn.quantize"(%4) {
    axis = 0 : i64, nan = "zero_point", rounding = "half_even", scales = array<f64: 5.000000e-02>, scaling =
    "reciprocal", zero_points = array<i64: 7>
  } : (tensor<1x2x2x2xf32>) -> tensor<1x2x2x2xui8>
  return %5 : tensor<1x2x2x2xui8>
}

// CHECK-LABEL: func.func @constant_of_places(
// CHECK-NOT: qnn.fused_conv2d
// CHECK: return
func.func @constant_of_places(%arg0: tensor<1x2x2x2xui8>) -> tensor<1x2x2x2xui8> {
  %0 = "qnn.constant"() {value = dense<3> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  %1 = "qnn.conv2d"(%arg0, %0) {
    dilation = array<i64: 1, 1>, groups = 1 : i64, input_scale = 2.500000e-01 : f64, input_zero_point = 3 : i64,
    padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>, weight_scales = array<f64: 5.000000e-01,
    2.500000e-01>, weight_zero_points = array<i64: 0>
  } : (tensor<1x2x2x2xui8>, tensor<2x1x1x2xi8>) -> tensor<1x2x2x2xi32>
  %2 = "qnn.dequantize"(%1) {
    axis = 3 : i64, scales = array<f64: 1.250000e-01, 6.250000e-02>, zero_points = array<i64: 0>
  } : (tensor<1x2x2x2xi32>) -> tensor<1x2x2x2xf32>
  %3 = "qnn.constant"() {
    value = dense<[[[[0.000000e+00, 1.000000e+00], [2.000000e+00, 3.000000e+00]], [[4.000000e+00, 5.000000e+00],
    [6.000000e+00, 7.000000e+00]]]]> : tensor<1x2x2x2xf32>
  } : () -> tensor<1x2x2x2xf32>
  %4 = arith.addf %2, %3 : tensor<1x2x2x2xf32>
  // expected-remark @+1 {{[fuse-float-epilogue] 'qnn.quantize' must add biases of the channels and one dequantized 8-bit tensor alone}}
  %5 = "qnn.quantize"(%4) {
    axis = 0 : i64, nan = "zero_point", rounding = "half_even", scales = array<f64: 5.000000e-02>, scaling =
    "reciprocal", zero_points = array<i64: 7>
  } : (tensor<1x2x2x2xf32>) -> tensor<1x2x2x2xui8>
  return %5 : tensor<1x2x2x2xui8>
}

// CHECK-LABEL: func.func @two_biases(
// CHECK-NOT: qnn.fused_conv2d
// CHECK: return
func.func @two_biases(%arg0: tensor<1x2x2x2xui8>) -> tensor<1x2x2x2xui8> {
  %0 = "qnn.constant"() {value = dense<[7, 8]> : tensor<2xi32>} : () -> tensor<2xi32>
  %1 = "qnn.constant"() {value = dense<3> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  %2 = "qnn.conv2d"(%arg0, %1, %0) {
    dilation = array<i64: 1, 1>, groups = 1 : i64, input_scale = 2.500000e-01 : f64, input_zero_point = 3 : i64,
    padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>, weight_scales = array<f64: 5.000000e-01,
    2.500000e-01>, weight_zero_points = array<i64: 0>
  } : (tensor<1x2x2x2xui8>, tensor<2x1x1x2xi8>, tensor<2xi32>) -> tensor<1x2x2x2xi32>
  %3 = "qnn.dequantize"(%2) {
    axis = 3 : i64, scales = array<f64: 1.250000e-01, 6.250000e-02>, zero_points = array<i64: 0>
  } : (tensor<1x2x2x2xi32>) -> tensor<1x2x2x2xf32>
  %4 = "qnn.constant"() {value = dense<[5.000000e-01, -2.500000e-01]> : tensor<2xf32>} : () -> tensor<2xf32>
  %5 = "qnn.broadcast"(%4) {shape = array<i64: 1, 2, 2, 2>} : (tensor<2xf32>) -> tensor<1x2x2x2xf32>
  %6 = arith.addf %3, %5 : tensor<1x2x2x2xf32>
  // expected-remark @+1 {{[fuse-float-epilogue] 'qnn.quantize' must have one bias, but there is one of integers and one of f32 values}}
  %7 = "qnn.quantize"(%6) {
    axis = 0 : i64, nan = "zero_point", rounding = "half_even", scales = array<f64: 5.000000e-02>, scaling =
    "reciprocal", zero_points = array<i64: 7>
  } : (tensor<1x2x2x2xf32>) -> tensor<1x2x2x2xui8>
  return %7 : tensor<1x2x2x2xui8>
}

// CHECK-LABEL: func.func @weight_at_run_time(
// CHECK-NOT: qnn.fused_conv2d
// CHECK: return
func.func @weight_at_run_time(%arg0: tensor<1x2x2x2xui8>, %arg1: tensor<2x1x1x2xi8>) -> tensor<1x2x2x2xui8> {
  %0 = "qnn.conv_transpose2d"(%arg0, %arg1) {
    dilation = array<i64: 1, 1>, groups = 1 : i64, input_scale = 2.500000e-01 : f64, input_zero_point = 3 : i64,
    padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>, weight_scales = array<f64: 5.000000e-01,
    2.500000e-01>, weight_zero_points = array<i64: 0>
  } : (tensor<1x2x2x2xui8>, tensor<2x1x1x2xi8>) -> tensor<1x2x2x2xi32>
  %1 = "qnn.dequantize"(%0) {
    axis = 3 : i64, scales = array<f64: 1.250000e-01, 6.250000e-02>, zero_points = array<i64: 0>
  } : (tensor<1x2x2x2xi32>) -> tensor<1x2x2x2xf32>
  // expected-remark @+1 {{[fuse-float-epilogue] 'qnn.quantize' needs a constant weight}}
  %2 = "qnn.quantize"(%1) {
    axis = 0 : i64, nan = "zero_point", rounding = "half_even", scales = array<f64: 5.000000e-02>, scaling =
    "reciprocal", zero_points = array<i64: 7>
  } : (tensor<1x2x2x2xf32>) -> tensor<1x2x2x2xui8>
  return %2 : tensor<1x2x2x2xui8>
}

// CHECK-LABEL: func.func @clamp_by_a_tensor(
// CHECK-NOT: qnn.fused_conv2d
// CHECK: return
func.func @clamp_by_a_tensor(%arg0: tensor<1x2x2x2xui8>, %arg1: tensor<1x2x2x2xf32>) -> tensor<1x2x2x2xui8> {
  %0 = "qnn.constant"() {value = dense<3> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  %1 = "qnn.conv2d"(%arg0, %0) {
    dilation = array<i64: 1, 1>, groups = 1 : i64, input_scale = 2.500000e-01 : f64, input_zero_point = 3 : i64,
    padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>, weight_scales = array<f64: 5.000000e-01,
    2.500000e-01>, weight_zero_points = array<i64: 0>
  } : (tensor<1x2x2x2xui8>, tensor<2x1x1x2xi8>) -> tensor<1x2x2x2xi32>
  %2 = "qnn.dequantize"(%1) {
    axis = 3 : i64, scales = array<f64: 1.250000e-01, 6.250000e-02>, zero_points = array<i64: 0>
  } : (tensor<1x2x2x2xi32>) -> tensor<1x2x2x2xf32>
  %3 = arith.maximumf %arg1, %2 : tensor<1x2x2x2xf32>
  // expected-remark @+1 {{[fuse-float-epilogue] 'qnn.quantize' must be a known activation of sums of dequantized accumulators, but there is 'arith.maximumf'}}
  %4 = "qnn.quantize"(%3) {
    axis = 0 : i64, nan = "zero_point", rounding = "half_even", scales = array<f64: 5.000000e-02>, scaling =
    "reciprocal", zero_points = array<i64: 7>
  } : (tensor<1x2x2x2xf32>) -> tensor<1x2x2x2xui8>
  return %4 : tensor<1x2x2x2xui8>
}
