// RUN: %qopt %s --qnn-raise-qdq | filecheck %s

// Covers R4: the float32 region of one tensor becomes a table, that of two an integer op with the same bits for all quantized values.

// CHECK-LABEL: func.func @leaky_relu(
// CHECK-NOT: arith.
// CHECK: "qnn.lut"(%arg0) {input_scale = 5.000000e-01 : f64, input_zero_point = 10 : i64, output_scale = 2.500000e-01 : f64, output_zero_point = 100 : i64
// CHECK-NOT: qnn.quantize
// CHECK: return
func.func @leaky_relu(%arg0: tensor<4xui8>) -> tensor<4xui8> {
  %0 = "qnn.dequantize"(%arg0) {
    axis = 0 : i64, scales = array<f64: 0.5>, zero_points = array<i64: 10>
  } : (tensor<4xui8>) -> tensor<4xf32>
  %1 = "qnn.constant"() {value = dense<0.0> : tensor<4xf32>} : () -> tensor<4xf32>
  %2 = arith.cmpf ogt, %0, %1 : tensor<4xf32>
  %3 = "qnn.constant"() {value = dense<0.00999999977> : tensor<4xf32>} : () -> tensor<4xf32>
  %4 = arith.mulf %0, %3 : tensor<4xf32>
  %5 = arith.select %2, %0, %4 : tensor<4xi1>, tensor<4xf32>
  %6 = "qnn.quantize"(%5) {
    axis = 0 : i64, nan = "zero_point", rounding = "half_even", scales = array<f64: 0.25>, scaling = "divide",
    zero_points = array<i64: 100>
  } : (tensor<4xf32>) -> tensor<4xui8>
  return %6 : tensor<4xui8>
}

// CHECK-LABEL: func.func @swish(
// CHECK-NOT: math.exp
// CHECK: "qnn.lut"(%arg0)
// CHECK-NOT: qnn.quantize
// CHECK: return
func.func @swish(%arg0: tensor<4xui8>) -> tensor<4xui8> {
  %0 = "qnn.dequantize"(%arg0) {
    axis = 0 : i64, scales = array<f64: 0.5>, zero_points = array<i64: 10>
  } : (tensor<4xui8>) -> tensor<4xf32>
  %1 = "qnn.constant"() {value = dense<1.0> : tensor<4xf32>} : () -> tensor<4xf32>
  %2 = arith.negf %0 : tensor<4xf32>
  %3 = math.exp %2 : tensor<4xf32>
  %4 = arith.addf %1, %3 : tensor<4xf32>
  %5 = arith.divf %1, %4 : tensor<4xf32>
  %6 = arith.mulf %0, %5 : tensor<4xf32>
  %7 = "qnn.quantize"(%6) {
    axis = 0 : i64, nan = "zero_point", rounding = "half_even", scales = array<f64: 0.25>, scaling = "divide",
    zero_points = array<i64: 100>
  } : (tensor<4xf32>) -> tensor<4xui8>
  return %7 : tensor<4xui8>
}

// CHECK-LABEL: func.func @sum(
// CHECK-NOT: qnn.dequantize
// CHECK: "qnn.add"(%arg0, %arg1) {arithmetic = "float_once"
// CHECK-NOT: qnn.quantize
// CHECK: return
func.func @sum(%arg0: tensor<4xui8>, %arg1: tensor<4xui8>) -> tensor<4xui8> {
  %0 = "qnn.dequantize"(%arg0) {
    axis = 0 : i64, scales = array<f64: 0.5>, zero_points = array<i64: 3>
  } : (tensor<4xui8>) -> tensor<4xf32>
  %1 = "qnn.dequantize"(%arg1) {
    axis = 0 : i64, scales = array<f64: 0.25>, zero_points = array<i64: 9>
  } : (tensor<4xui8>) -> tensor<4xf32>
  %2 = arith.addf %0, %1 : tensor<4xf32>
  %3 = "qnn.quantize"(%2) {
    axis = 0 : i64, nan = "zero_point", rounding = "half_even", scales = array<f64: 0.5>, scaling = "divide",
    zero_points = array<i64: 100>
  } : (tensor<4xf32>) -> tensor<4xui8>
  return %3 : tensor<4xui8>
}

// CHECK-LABEL: func.func @relu_of_a_product(
// CHECK-NOT: qnn.dequantize
// CHECK: "qnn.mul"(%arg0, %arg1)
// CHECK-SAME: output_min = 100 : i64
// CHECK-NOT: qnn.quantize
// CHECK: return
func.func @relu_of_a_product(%arg0: tensor<4xui8>, %arg1: tensor<4xui8>) -> tensor<4xui8> {
  %0 = "qnn.dequantize"(%arg0) {
    axis = 0 : i64, scales = array<f64: 0.5>, zero_points = array<i64: 3>
  } : (tensor<4xui8>) -> tensor<4xf32>
  %1 = "qnn.dequantize"(%arg1) {
    axis = 0 : i64, scales = array<f64: 0.25>, zero_points = array<i64: 9>
  } : (tensor<4xui8>) -> tensor<4xf32>
  %2 = arith.mulf %0, %1 : tensor<4xf32>
  %3 = "qnn.constant"() {value = dense<0.0> : tensor<4xf32>} : () -> tensor<4xf32>
  %4 = arith.maximumf %2, %3 : tensor<4xf32>
  %5 = "qnn.quantize"(%4) {
    axis = 0 : i64, nan = "zero_point", rounding = "half_even", scales = array<f64: 1.0>, scaling = "divide",
    zero_points = array<i64: 100>
  } : (tensor<4xf32>) -> tensor<4xui8>
  return %5 : tensor<4xui8>
}

// CHECK-LABEL: func.func @fused_and_remainders(
// CHECK-NOT: math.
// CHECK: "qnn.lut"(%arg0)
// CHECK-NOT: arith.
func.func @fused_and_remainders(%arg0: tensor<2xui8>) -> tensor<2xui8> {
  %0 = "qnn.dequantize"(%arg0) {
    axis = 0 : i64, scales = array<f64: 0.5>, zero_points = array<i64: 10>
  } : (tensor<2xui8>) -> tensor<2xf32>
  %1 = "qnn.constant"() {value = dense<1.5> : tensor<2xf32>} : () -> tensor<2xf32>
  %2 = math.erfc %0 : tensor<2xf32>
  %3 = math.fma %2, %0, %1 : tensor<2xf32>
  %4 = arith.remf %3, %1 : tensor<2xf32>
  %5 = "qnn.quantize"(%4) {
    axis = 0 : i64, nan = "zero_point", rounding = "half_even", scales = array<f64: 0.25>, scaling = "divide",
    zero_points = array<i64: 100>
  } : (tensor<2xf32>) -> tensor<2xui8>
  return %5 : tensor<2xui8>
}
