// RUN: %qopt %s --qnn-fuse-float-epilogue | filecheck %s

// Covers R12 and scheme E: the activation of f32 values, with bias and residual, is rounded once, inside the kernel.

// CHECK-LABEL: func.func @none(
// CHECK-NOT: qnn.dequantize
// CHECK: "qnn.fused_conv2d"(%arg0, %{{.*}}, %{{.*}}) {epilogue = [{dequantize = {multiplier = "f32"}}, {quantize = {scaling = "reciprocal"}}]
// CHECK-SAME: output_zero_point = 7 : i64
// CHECK-NOT: qnn.quantize
// CHECK: return
func.func @none(%arg0: tensor<1x2x2x2xui8>) -> tensor<1x2x2x2xui8> {
  %0 = "qnn.constant"() {value = dense<3> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  %1 = "qnn.conv2d"(%arg0, %0) {
    dilation = array<i64: 1, 1>, groups = 1 : i64, input_scale = 2.500000e-01 : f64, input_zero_point = 3 : i64,
    padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>, weight_scales = array<f64: 5.000000e-01,
    2.500000e-01>, weight_zero_points = array<i64: 0>
  } : (tensor<1x2x2x2xui8>, tensor<2x1x1x2xi8>) -> tensor<1x2x2x2xi32>
  %2 = "qnn.dequantize"(%1) {
    axis = 3 : i64, scales = array<f64: 1.250000e-01, 6.250000e-02>, zero_points = array<i64: 0>
  } : (tensor<1x2x2x2xi32>) -> tensor<1x2x2x2xf32>
  %3 = "qnn.quantize"(%2) {
    axis = 0 : i64, nan = "zero_point", rounding = "half_even", scales = array<f64: 5.000000e-02>, scaling =
    "reciprocal", zero_points = array<i64: 7>
  } : (tensor<1x2x2x2xf32>) -> tensor<1x2x2x2xui8>
  return %3 : tensor<1x2x2x2xui8>
}

// CHECK-LABEL: func.func @leaky_relu(
// CHECK-NOT: qnn.dequantize
// CHECK: "qnn.fused_conv2d"(%arg0, %{{.*}}, %{{.*}}) {epilogue = [{dequantize = {multiplier = "f32"}}, {activation = {alpha = 1.250000e-01 : f64, function = "leaky_relu"}}, {quantize = {scaling = "reciprocal"}}]
// CHECK-NOT: qnn.quantize
// CHECK: return
func.func @leaky_relu(%arg0: tensor<1x2x2x2xui8>) -> tensor<1x2x2x2xui8> {
  %0 = "qnn.constant"() {value = dense<3> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  %1 = "qnn.conv2d"(%arg0, %0) {
    dilation = array<i64: 1, 1>, groups = 1 : i64, input_scale = 2.500000e-01 : f64, input_zero_point = 3 : i64,
    padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>, weight_scales = array<f64: 5.000000e-01,
    2.500000e-01>, weight_zero_points = array<i64: 0>
  } : (tensor<1x2x2x2xui8>, tensor<2x1x1x2xi8>) -> tensor<1x2x2x2xi32>
  %2 = "qnn.dequantize"(%1) {
    axis = 3 : i64, scales = array<f64: 1.250000e-01, 6.250000e-02>, zero_points = array<i64: 0>
  } : (tensor<1x2x2x2xi32>) -> tensor<1x2x2x2xf32>
  %3 = "qnn.constant"() {value = dense<0.000000e+00> : tensor<1x2x2x2xf32>} : () -> tensor<1x2x2x2xf32>
  %4 = arith.cmpf ogt, %2, %3 : tensor<1x2x2x2xf32>
  %5 = "qnn.constant"() {value = dense<1.250000e-01> : tensor<1x2x2x2xf32>} : () -> tensor<1x2x2x2xf32>
  %6 = arith.mulf %2, %5 : tensor<1x2x2x2xf32>
  %7 = arith.select %4, %2, %6 : tensor<1x2x2x2xi1>, tensor<1x2x2x2xf32>
  %8 = "qnn.quantize"(%7) {
    axis = 0 : i64, nan = "zero_point", rounding = "half_even", scales = array<f64: 5.000000e-02>, scaling =
    "reciprocal", zero_points = array<i64: 7>
  } : (tensor<1x2x2x2xf32>) -> tensor<1x2x2x2xui8>
  return %8 : tensor<1x2x2x2xui8>
}

// CHECK-LABEL: func.func @elu(
// CHECK-NOT: qnn.dequantize
// CHECK: "qnn.fused_conv2d"(%arg0, %{{.*}}, %{{.*}}) {epilogue = [{dequantize = {multiplier = "f32"}}, {activation = {alpha = 1.250000e-01 : f64, function = "elu"}}, {quantize = {scaling = "reciprocal"}}]
// CHECK-NOT: qnn.quantize
// CHECK: return
func.func @elu(%arg0: tensor<1x2x2x2xui8>) -> tensor<1x2x2x2xui8> {
  %0 = "qnn.constant"() {value = dense<3> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  %1 = "qnn.conv2d"(%arg0, %0) {
    dilation = array<i64: 1, 1>, groups = 1 : i64, input_scale = 2.500000e-01 : f64, input_zero_point = 3 : i64,
    padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>, weight_scales = array<f64: 5.000000e-01,
    2.500000e-01>, weight_zero_points = array<i64: 0>
  } : (tensor<1x2x2x2xui8>, tensor<2x1x1x2xi8>) -> tensor<1x2x2x2xi32>
  %2 = "qnn.dequantize"(%1) {
    axis = 3 : i64, scales = array<f64: 1.250000e-01, 6.250000e-02>, zero_points = array<i64: 0>
  } : (tensor<1x2x2x2xi32>) -> tensor<1x2x2x2xf32>
  %3 = "qnn.constant"() {value = dense<0.000000e+00> : tensor<1x2x2x2xf32>} : () -> tensor<1x2x2x2xf32>
  %4 = arith.cmpf ogt, %2, %3 : tensor<1x2x2x2xf32>
  %5 = math.expm1 %2 : tensor<1x2x2x2xf32>
  %6 = "qnn.constant"() {value = dense<1.250000e-01> : tensor<1x2x2x2xf32>} : () -> tensor<1x2x2x2xf32>
  %7 = arith.mulf %5, %6 : tensor<1x2x2x2xf32>
  %8 = arith.select %4, %2, %7 : tensor<1x2x2x2xi1>, tensor<1x2x2x2xf32>
  %9 = "qnn.quantize"(%8) {
    axis = 0 : i64, nan = "zero_point", rounding = "half_even", scales = array<f64: 5.000000e-02>, scaling =
    "reciprocal", zero_points = array<i64: 7>
  } : (tensor<1x2x2x2xf32>) -> tensor<1x2x2x2xui8>
  return %9 : tensor<1x2x2x2xui8>
}

// CHECK-LABEL: func.func @hardswish(
// CHECK-NOT: qnn.dequantize
// CHECK: "qnn.fused_conv2d"(%arg0, %{{.*}}, %{{.*}}) {epilogue = [{dequantize = {multiplier = "f32"}}, {activation = {function = "hardswish"}}, {quantize = {scaling = "reciprocal"}}]
// CHECK-NOT: qnn.quantize
// CHECK: return
func.func @hardswish(%arg0: tensor<1x2x2x2xui8>) -> tensor<1x2x2x2xui8> {
  %0 = "qnn.constant"() {value = dense<3> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  %1 = "qnn.conv2d"(%arg0, %0) {
    dilation = array<i64: 1, 1>, groups = 1 : i64, input_scale = 2.500000e-01 : f64, input_zero_point = 3 : i64,
    padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>, weight_scales = array<f64: 5.000000e-01,
    2.500000e-01>, weight_zero_points = array<i64: 0>
  } : (tensor<1x2x2x2xui8>, tensor<2x1x1x2xi8>) -> tensor<1x2x2x2xi32>
  %2 = "qnn.dequantize"(%1) {
    axis = 3 : i64, scales = array<f64: 1.250000e-01, 6.250000e-02>, zero_points = array<i64: 0>
  } : (tensor<1x2x2x2xi32>) -> tensor<1x2x2x2xf32>
  %3 = "qnn.constant"() {value = dense<3.000000e+00> : tensor<1x2x2x2xf32>} : () -> tensor<1x2x2x2xf32>
  %4 = arith.addf %2, %3 : tensor<1x2x2x2xf32>
  %5 = "qnn.constant"() {value = dense<0.000000e+00> : tensor<1x2x2x2xf32>} : () -> tensor<1x2x2x2xf32>
  %is_6 = arith.cmpf ogt, %5, %4 : tensor<1x2x2x2xf32>
  %6 = arith.select %is_6, %5, %4 : tensor<1x2x2x2xi1>, tensor<1x2x2x2xf32>
  %7 = "qnn.constant"() {value = dense<6.000000e+00> : tensor<1x2x2x2xf32>} : () -> tensor<1x2x2x2xf32>
  %is_8 = arith.cmpf ogt, %6, %7 : tensor<1x2x2x2xf32>
  %8 = arith.select %is_8, %7, %6 : tensor<1x2x2x2xi1>, tensor<1x2x2x2xf32>
  %9 = arith.mulf %2, %8 : tensor<1x2x2x2xf32>
  %10 = "qnn.constant"() {value = dense<6.000000e+00> : tensor<1x2x2x2xf32>} : () -> tensor<1x2x2x2xf32>
  %11 = arith.divf %9, %10 : tensor<1x2x2x2xf32>
  %12 = "qnn.quantize"(%11) {
    axis = 0 : i64, nan = "zero_point", rounding = "half_even", scales = array<f64: 5.000000e-02>, scaling =
    "reciprocal", zero_points = array<i64: 7>
  } : (tensor<1x2x2x2xf32>) -> tensor<1x2x2x2xui8>
  return %12 : tensor<1x2x2x2xui8>
}

// CHECK-LABEL: func.func @hardsigmoid(
// CHECK-NOT: qnn.dequantize
// CHECK: "qnn.fused_conv2d"(%arg0, %{{.*}}, %{{.*}}) {epilogue = [{dequantize = {multiplier = "f32"}}, {activation = {function = "hardsigmoid"}}, {quantize = {scaling = "reciprocal"}}]
// CHECK-NOT: qnn.quantize
// CHECK: return
func.func @hardsigmoid(%arg0: tensor<1x2x2x2xui8>) -> tensor<1x2x2x2xui8> {
  %0 = "qnn.constant"() {value = dense<3> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  %1 = "qnn.conv2d"(%arg0, %0) {
    dilation = array<i64: 1, 1>, groups = 1 : i64, input_scale = 2.500000e-01 : f64, input_zero_point = 3 : i64,
    padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>, weight_scales = array<f64: 5.000000e-01,
    2.500000e-01>, weight_zero_points = array<i64: 0>
  } : (tensor<1x2x2x2xui8>, tensor<2x1x1x2xi8>) -> tensor<1x2x2x2xi32>
  %2 = "qnn.dequantize"(%1) {
    axis = 3 : i64, scales = array<f64: 1.250000e-01, 6.250000e-02>, zero_points = array<i64: 0>
  } : (tensor<1x2x2x2xi32>) -> tensor<1x2x2x2xf32>
  %3 = "qnn.constant"() {value = dense<3.000000e+00> : tensor<1x2x2x2xf32>} : () -> tensor<1x2x2x2xf32>
  %4 = arith.addf %2, %3 : tensor<1x2x2x2xf32>
  %5 = "qnn.constant"() {value = dense<0.000000e+00> : tensor<1x2x2x2xf32>} : () -> tensor<1x2x2x2xf32>
  %is_6 = arith.cmpf ogt, %5, %4 : tensor<1x2x2x2xf32>
  %6 = arith.select %is_6, %5, %4 : tensor<1x2x2x2xi1>, tensor<1x2x2x2xf32>
  %7 = "qnn.constant"() {value = dense<6.000000e+00> : tensor<1x2x2x2xf32>} : () -> tensor<1x2x2x2xf32>
  %is_8 = arith.cmpf ogt, %6, %7 : tensor<1x2x2x2xf32>
  %8 = arith.select %is_8, %7, %6 : tensor<1x2x2x2xi1>, tensor<1x2x2x2xf32>
  %9 = "qnn.constant"() {value = dense<6.000000e+00> : tensor<1x2x2x2xf32>} : () -> tensor<1x2x2x2xf32>
  %10 = arith.divf %8, %9 : tensor<1x2x2x2xf32>
  %11 = "qnn.quantize"(%10) {
    axis = 0 : i64, nan = "zero_point", rounding = "half_even", scales = array<f64: 5.000000e-02>, scaling =
    "reciprocal", zero_points = array<i64: 7>
  } : (tensor<1x2x2x2xf32>) -> tensor<1x2x2x2xui8>
  return %11 : tensor<1x2x2x2xui8>
}

// CHECK-LABEL: func.func @sigmoid(
// CHECK-NOT: qnn.dequantize
// CHECK: "qnn.fused_conv2d"(%arg0, %{{.*}}, %{{.*}}) {epilogue = [{dequantize = {multiplier = "f32"}}, {activation = {function = "sigmoid"}}, {quantize = {scaling = "reciprocal"}}]
// CHECK-NOT: qnn.quantize
// CHECK: return
func.func @sigmoid(%arg0: tensor<1x2x2x2xui8>) -> tensor<1x2x2x2xui8> {
  %0 = "qnn.constant"() {value = dense<3> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  %1 = "qnn.conv2d"(%arg0, %0) {
    dilation = array<i64: 1, 1>, groups = 1 : i64, input_scale = 2.500000e-01 : f64, input_zero_point = 3 : i64,
    padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>, weight_scales = array<f64: 5.000000e-01,
    2.500000e-01>, weight_zero_points = array<i64: 0>
  } : (tensor<1x2x2x2xui8>, tensor<2x1x1x2xi8>) -> tensor<1x2x2x2xi32>
  %2 = "qnn.dequantize"(%1) {
    axis = 3 : i64, scales = array<f64: 1.250000e-01, 6.250000e-02>, zero_points = array<i64: 0>
  } : (tensor<1x2x2x2xi32>) -> tensor<1x2x2x2xf32>
  %3 = "qnn.constant"() {value = dense<1.000000e+00> : tensor<1x2x2x2xf32>} : () -> tensor<1x2x2x2xf32>
  %4 = "qnn.constant"() {value = dense<1.000000e+00> : tensor<1x2x2x2xf32>} : () -> tensor<1x2x2x2xf32>
  %5 = arith.negf %2 : tensor<1x2x2x2xf32>
  %6 = math.exp %5 : tensor<1x2x2x2xf32>
  %7 = arith.addf %4, %6 : tensor<1x2x2x2xf32>
  %8 = arith.divf %3, %7 : tensor<1x2x2x2xf32>
  %9 = "qnn.quantize"(%8) {
    axis = 0 : i64, nan = "zero_point", rounding = "half_even", scales = array<f64: 5.000000e-02>, scaling =
    "reciprocal", zero_points = array<i64: 7>
  } : (tensor<1x2x2x2xf32>) -> tensor<1x2x2x2xui8>
  return %9 : tensor<1x2x2x2xui8>
}

// CHECK-LABEL: func.func @silu(
// CHECK-NOT: qnn.dequantize
// CHECK: "qnn.fused_conv2d"(%arg0, %{{.*}}, %{{.*}}) {epilogue = [{dequantize = {multiplier = "f32"}}, {activation = {function = "silu"}}, {quantize = {scaling = "reciprocal"}}]
// CHECK-NOT: qnn.quantize
// CHECK: return
func.func @silu(%arg0: tensor<1x2x2x2xui8>) -> tensor<1x2x2x2xui8> {
  %0 = "qnn.constant"() {value = dense<3> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  %1 = "qnn.conv2d"(%arg0, %0) {
    dilation = array<i64: 1, 1>, groups = 1 : i64, input_scale = 2.500000e-01 : f64, input_zero_point = 3 : i64,
    padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>, weight_scales = array<f64: 5.000000e-01,
    2.500000e-01>, weight_zero_points = array<i64: 0>
  } : (tensor<1x2x2x2xui8>, tensor<2x1x1x2xi8>) -> tensor<1x2x2x2xi32>
  %2 = "qnn.dequantize"(%1) {
    axis = 3 : i64, scales = array<f64: 1.250000e-01, 6.250000e-02>, zero_points = array<i64: 0>
  } : (tensor<1x2x2x2xi32>) -> tensor<1x2x2x2xf32>
  %3 = "qnn.constant"() {value = dense<1.000000e+00> : tensor<1x2x2x2xf32>} : () -> tensor<1x2x2x2xf32>
  %4 = "qnn.constant"() {value = dense<1.000000e+00> : tensor<1x2x2x2xf32>} : () -> tensor<1x2x2x2xf32>
  %5 = arith.negf %2 : tensor<1x2x2x2xf32>
  %6 = math.exp %5 : tensor<1x2x2x2xf32>
  %7 = arith.addf %4, %6 : tensor<1x2x2x2xf32>
  %8 = arith.divf %3, %7 : tensor<1x2x2x2xf32>
  %9 = arith.mulf %2, %8 : tensor<1x2x2x2xf32>
  %10 = "qnn.quantize"(%9) {
    axis = 0 : i64, nan = "zero_point", rounding = "half_even", scales = array<f64: 5.000000e-02>, scaling =
    "reciprocal", zero_points = array<i64: 7>
  } : (tensor<1x2x2x2xf32>) -> tensor<1x2x2x2xui8>
  return %10 : tensor<1x2x2x2xui8>
}

// CHECK-LABEL: func.func @tanh(
// CHECK-NOT: qnn.dequantize
// CHECK: "qnn.fused_conv2d"(%arg0, %{{.*}}, %{{.*}}) {epilogue = [{dequantize = {multiplier = "f32"}}, {activation = {function = "tanh"}}, {quantize = {scaling = "reciprocal"}}]
// CHECK-NOT: qnn.quantize
// CHECK: return
func.func @tanh(%arg0: tensor<1x2x2x2xui8>) -> tensor<1x2x2x2xui8> {
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
  %4 = "qnn.quantize"(%3) {
    axis = 0 : i64, nan = "zero_point", rounding = "half_even", scales = array<f64: 5.000000e-02>, scaling =
    "reciprocal", zero_points = array<i64: 7>
  } : (tensor<1x2x2x2xf32>) -> tensor<1x2x2x2xui8>
  return %4 : tensor<1x2x2x2xui8>
}

// CHECK-LABEL: func.func @gelu(
// CHECK-NOT: qnn.dequantize
// CHECK: "qnn.fused_conv2d"(%arg0, %{{.*}}, %{{.*}}) {epilogue = [{dequantize = {multiplier = "f32"}}, {activation = {function = "gelu"}}, {quantize = {scaling = "reciprocal"}}]
// CHECK-NOT: qnn.quantize
// CHECK: return
func.func @gelu(%arg0: tensor<1x2x2x2xui8>) -> tensor<1x2x2x2xui8> {
  %0 = "qnn.constant"() {value = dense<3> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  %1 = "qnn.conv2d"(%arg0, %0) {
    dilation = array<i64: 1, 1>, groups = 1 : i64, input_scale = 2.500000e-01 : f64, input_zero_point = 3 : i64,
    padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>, weight_scales = array<f64: 5.000000e-01,
    2.500000e-01>, weight_zero_points = array<i64: 0>
  } : (tensor<1x2x2x2xui8>, tensor<2x1x1x2xi8>) -> tensor<1x2x2x2xi32>
  %2 = "qnn.dequantize"(%1) {
    axis = 3 : i64, scales = array<f64: 1.250000e-01, 6.250000e-02>, zero_points = array<i64: 0>
  } : (tensor<1x2x2x2xi32>) -> tensor<1x2x2x2xf32>
  %3 = "qnn.constant"() {value = dense<5.000000e-01> : tensor<1x2x2x2xf32>} : () -> tensor<1x2x2x2xf32>
  %4 = arith.mulf %2, %3 : tensor<1x2x2x2xf32>
  %5 = "qnn.constant"() {value = dense<1.000000e+00> : tensor<1x2x2x2xf32>} : () -> tensor<1x2x2x2xf32>
  %6 = "qnn.constant"() {value = dense<0.707106769> : tensor<1x2x2x2xf32>} : () -> tensor<1x2x2x2xf32>
  %7 = arith.mulf %2, %6 : tensor<1x2x2x2xf32>
  %8 = math.erf %7 : tensor<1x2x2x2xf32>
  %9 = arith.addf %5, %8 : tensor<1x2x2x2xf32>
  %10 = arith.mulf %4, %9 : tensor<1x2x2x2xf32>
  %11 = "qnn.quantize"(%10) {
    axis = 0 : i64, nan = "zero_point", rounding = "half_even", scales = array<f64: 5.000000e-02>, scaling =
    "reciprocal", zero_points = array<i64: 7>
  } : (tensor<1x2x2x2xf32>) -> tensor<1x2x2x2xui8>
  return %11 : tensor<1x2x2x2xui8>
}

// CHECK-LABEL: func.func @gelu_tanh(
// CHECK-NOT: qnn.dequantize
// CHECK: "qnn.fused_conv2d"(%arg0, %{{.*}}, %{{.*}}) {epilogue = [{dequantize = {multiplier = "f32"}}, {activation = {function = "gelu_tanh"}}, {quantize = {scaling = "reciprocal"}}]
// CHECK-NOT: qnn.quantize
// CHECK: return
func.func @gelu_tanh(%arg0: tensor<1x2x2x2xui8>) -> tensor<1x2x2x2xui8> {
  %0 = "qnn.constant"() {value = dense<3> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  %1 = "qnn.conv2d"(%arg0, %0) {
    dilation = array<i64: 1, 1>, groups = 1 : i64, input_scale = 2.500000e-01 : f64, input_zero_point = 3 : i64,
    padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>, weight_scales = array<f64: 5.000000e-01,
    2.500000e-01>, weight_zero_points = array<i64: 0>
  } : (tensor<1x2x2x2xui8>, tensor<2x1x1x2xi8>) -> tensor<1x2x2x2xi32>
  %2 = "qnn.dequantize"(%1) {
    axis = 3 : i64, scales = array<f64: 1.250000e-01, 6.250000e-02>, zero_points = array<i64: 0>
  } : (tensor<1x2x2x2xi32>) -> tensor<1x2x2x2xf32>
  %3 = "qnn.constant"() {value = dense<5.000000e-01> : tensor<1x2x2x2xf32>} : () -> tensor<1x2x2x2xf32>
  %4 = arith.mulf %2, %3 : tensor<1x2x2x2xf32>
  %5 = "qnn.constant"() {value = dense<1.000000e+00> : tensor<1x2x2x2xf32>} : () -> tensor<1x2x2x2xf32>
  %6 = "qnn.constant"() {value = dense<0.797884583> : tensor<1x2x2x2xf32>} : () -> tensor<1x2x2x2xf32>
  %7 = "qnn.constant"() {value = dense<4.471500e-02> : tensor<1x2x2x2xf32>} : () -> tensor<1x2x2x2xf32>
  %8 = arith.mulf %2, %2 : tensor<1x2x2x2xf32>
  %9 = arith.mulf %8, %2 : tensor<1x2x2x2xf32>
  %10 = arith.mulf %7, %9 : tensor<1x2x2x2xf32>
  %11 = arith.addf %2, %10 : tensor<1x2x2x2xf32>
  %12 = arith.mulf %6, %11 : tensor<1x2x2x2xf32>
  %13 = math.tanh %12 : tensor<1x2x2x2xf32>
  %14 = arith.addf %5, %13 : tensor<1x2x2x2xf32>
  %15 = arith.mulf %4, %14 : tensor<1x2x2x2xf32>
  %16 = "qnn.quantize"(%15) {
    axis = 0 : i64, nan = "zero_point", rounding = "half_even", scales = array<f64: 5.000000e-02>, scaling =
    "reciprocal", zero_points = array<i64: 7>
  } : (tensor<1x2x2x2xf32>) -> tensor<1x2x2x2xui8>
  return %16 : tensor<1x2x2x2xui8>
}

// CHECK-LABEL: func.func @bias_residual_and_clamp(
// CHECK-NOT: qnn.dequantize
// CHECK: "qnn.fused_conv2d"(%arg0, %{{.*}}, %{{.*}}, %arg1)
// CHECK-SAME: {sum = {residual_scale = 4.000000e-02 : f64, residual_zero_point = 9 : i64}}, {quantize}, {clamp = {max = 127 : i64, min = 7 : i64}}]
// CHECK-SAME: tensor<2xf32>, tensor<1x2x2x2xui8>
// CHECK-NOT: qnn.quantize
// CHECK: return
func.func @bias_residual_and_clamp(%arg0: tensor<1x2x2x2xui8>, %arg1: tensor<1x2x2x2xui8>) -> tensor<1x2x2x2xui8> {
  %0 = "qnn.constant"() {value = dense<3> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  %1 = "qnn.conv2d"(%arg0, %0) {
    dilation = array<i64: 1, 1>, groups = 1 : i64, input_scale = 2.500000e-01 : f64, input_zero_point = 3 : i64,
    padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>, weight_scales = array<f64: 5.000000e-01,
    2.500000e-01>, weight_zero_points = array<i64: 0>
  } : (tensor<1x2x2x2xui8>, tensor<2x1x1x2xi8>) -> tensor<1x2x2x2xi32>
  %2 = "qnn.dequantize"(%1) {
    axis = 3 : i64, scales = array<f64: 1.250000e-01, 6.250000e-02>, zero_points = array<i64: 0>
  } : (tensor<1x2x2x2xi32>) -> tensor<1x2x2x2xf32>
  %3 = "qnn.constant"() {value = dense<[5.000000e-01, -2.500000e-01]> : tensor<2xf32>} : () -> tensor<2xf32>
  %4 = "qnn.broadcast"(%3) {shape = array<i64: 1, 2, 2, 2>} : (tensor<2xf32>) -> tensor<1x2x2x2xf32>
  %5 = arith.addf %2, %4 : tensor<1x2x2x2xf32>
  %6 = "qnn.dequantize"(%arg1) {
    axis = 0 : i64, scales = array<f64: 4.000000e-02>, zero_points = array<i64: 9>
  } : (tensor<1x2x2x2xui8>) -> tensor<1x2x2x2xf32>
  %7 = arith.addf %5, %6 : tensor<1x2x2x2xf32>
  %8 = "qnn.constant"() {value = dense<0.000000e+00> : tensor<1x2x2x2xf32>} : () -> tensor<1x2x2x2xf32>
  %is_9 = arith.cmpf ogt, %8, %7 : tensor<1x2x2x2xf32>
  %9 = arith.select %is_9, %8, %7 : tensor<1x2x2x2xi1>, tensor<1x2x2x2xf32>
  %10 = "qnn.constant"() {value = dense<6.000000e+00> : tensor<1x2x2x2xf32>} : () -> tensor<1x2x2x2xf32>
  %is_11 = arith.cmpf ogt, %9, %10 : tensor<1x2x2x2xf32>
  %11 = arith.select %is_11, %10, %9 : tensor<1x2x2x2xi1>, tensor<1x2x2x2xf32>
  %12 = "qnn.quantize"(%11) {
    axis = 0 : i64, nan = "zero_point", rounding = "half_even", scales = array<f64: 5.000000e-02>, scaling =
    "divide", zero_points = array<i64: 7>
  } : (tensor<1x2x2x2xf32>) -> tensor<1x2x2x2xui8>
  return %12 : tensor<1x2x2x2xui8>
}
