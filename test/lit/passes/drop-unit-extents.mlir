// RUN: %qopt %s --qnn-drop-unit-extents | filecheck %s

// CHECK-LABEL: func.func @between_reshapes(
// CHECK-NEXT: %[[NUMBERS:.*]] = "qnn.dequantize"(%arg0) {{.*}} : (tensor<1x3x5xui8>) -> tensor<1x3x5xf32>
// CHECK-NEXT: %[[SCALE:.*]] = "qnn.constant"() {value = dense<[1.000000e+00, 2.000000e+00, 3.000000e+00, 4.000000e+00, 5.000000e+00]> : tensor<5xf32>}
// CHECK-NEXT: %[[SCALES:.*]] = "qnn.broadcast"(%[[SCALE]]) {shape = array<i64: 1, 3, 5>}
// CHECK-NEXT: %[[SCALED:.*]] = arith.mulf %[[NUMBERS]], %[[SCALES]] : tensor<1x3x5xf32>
// CHECK-NEXT: %[[CONDITION:.*]] = arith.cmpf ogt, %[[NUMBERS]], %[[SCALED]] : tensor<1x3x5xf32>
// CHECK-NEXT: %[[CHOSEN:.*]] = arith.select %[[CONDITION]], %[[NUMBERS]], %[[SCALED]] : tensor<1x3x5xi1>, tensor<1x3x5xf32>
// CHECK-NEXT: "qnn.quantize"(%[[CHOSEN]]) {{.*}} : (tensor<1x3x5xf32>) -> tensor<1x3x5xui8>
// CHECK-NEXT: return
func.func @between_reshapes(%arg0: tensor<1x3x5xui8>) -> tensor<1x3x5xui8> {
  %0 = "qnn.reshape"(%arg0) {shape = array<i64: 1, 3, 5, 1, 1>} : (tensor<1x3x5xui8>) -> tensor<1x3x5x1x1xui8>
  %1 = "qnn.dequantize"(%0) {axis = 4 : i64, scales = array<f64: 5.000000e-01>, zero_points = array<i64: 3>} : (tensor<1x3x5x1x1xui8>) -> tensor<1x3x5x1x1xf32>
  %2 = "qnn.constant"() {value = dense<[[[1.0]], [[2.0]], [[3.0]], [[4.0]], [[5.0]]]> : tensor<5x1x1xf32>} : () -> tensor<5x1x1xf32>
  %3 = "qnn.broadcast"(%2) {shape = array<i64: 1, 3, 5, 1, 1>} : (tensor<5x1x1xf32>) -> tensor<1x3x5x1x1xf32>
  %4 = arith.mulf %1, %3 : tensor<1x3x5x1x1xf32>
  %5 = arith.cmpf ogt, %1, %4 : tensor<1x3x5x1x1xf32>
  %6 = arith.select %5, %1, %4 : tensor<1x3x5x1x1xi1>, tensor<1x3x5x1x1xf32>
  %7 = "qnn.reshape"(%6) {shape = array<i64: 1, 3, 5>} : (tensor<1x3x5x1x1xf32>) -> tensor<1x3x5xf32>
  %8 = "qnn.quantize"(%7) {scales = array<f64: 5.000000e-01>, zero_points = array<i64: 3>} : (tensor<1x3x5xf32>) -> tensor<1x3x5xui8>
  return %8 : tensor<1x3x5xui8>
}

// CHECK-LABEL: func.func @sum_of_one(
// CHECK: %[[ZERO:.*]] = "qnn.constant"() {value = dense<0.000000e+00> : tensor<3x1x5xf32>}
// CHECK-NEXT: %[[SUM:.*]] = arith.addf %{{.*}}, %[[ZERO]] : tensor<3x1x5xf32>
// CHECK-NEXT: "qnn.reshape"(%[[SUM]]) {shape = array<i64: 5, 3>}
func.func @sum_of_one(%arg0: tensor<3x1x5x1xf32>) -> tensor<5x3xf32> {
  %0 = "qnn.f32_sum"(%arg0) {axes = array<i64: 1, 3>} : (tensor<3x1x5x1xf32>) -> tensor<3x5xf32>
  %1 = "qnn.reshape"(%0) {shape = array<i64: 5, 3>} : (tensor<3x5xf32>) -> tensor<5x3xf32>
  return %1 : tensor<5x3xf32>
}

// A sum along rows of 32 and more has partial sums, which it had not before.
// CHECK-LABEL: func.func @sum_in_the_same_order(
// CHECK: "qnn.f32_sum"(%{{.*}}) {axes = array<i64: 1>, in_order = true} : (tensor<3x40xf32>) -> tensor<3xf32>
// CHECK: "qnn.int_max"(%{{.*}}) {axes = array<i64: 0>} : (tensor<3x40xi32>) -> tensor<40xi32>
func.func @sum_in_the_same_order(%arg0: tensor<3x40x1xf32>, %arg1: tensor<3x40x1xi32>) -> (tensor<3x1x1xf32>, tensor<40x1xi32>) {
  %0 = "qnn.f32_sum"(%arg0) {axes = array<i64: 1, 2>, keep_dims = true} : (tensor<3x40x1xf32>) -> tensor<3x1x1xf32>
  %1 = "qnn.int_max"(%arg1) {axes = array<i64: 0>} : (tensor<3x40x1xi32>) -> tensor<40x1xi32>
  return %0, %1 : tensor<3x1x1xf32>, tensor<40x1xi32>
}
