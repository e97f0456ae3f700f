// RUN: %qopt %s --qnn-to-quant-types | filecheck %s

// What no quantized type can say stays an attribute.

// CHECK-NOT: !quant
// CHECK-LABEL: func.func @zero_point_outside_the_storage(
// CHECK-SAME: qnn.zero_point = 300 : i64
func.func @zero_point_outside_the_storage(%x: tensor<2xi8> {qnn.scale = 0.5 : f64, qnn.zero_point = 300 : i64})
    -> tensor<2xi8> {
  return %x : tensor<2xi8>
}

// CHECK-LABEL: func.func @one_scale_and_many_zero_points(
// CHECK: qnn.dequantize
func.func @one_scale_and_many_zero_points(%x: tensor<2xi8>) -> tensor<2xf32> {
  %0 = "qnn.dequantize"(%x) {axis = 0 : i64, scales = array<f64: 0.5>, zero_points = array<i64: 1, 2>}
    : (tensor<2xi8>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
