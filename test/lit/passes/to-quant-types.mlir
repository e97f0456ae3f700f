// RUN: %qopt %s --qnn-to-quant-types | filecheck %s
// RUN: %qopt %s -o %t.plain.mlir
// RUN: %qopt %s --qnn-to-quant-types | %qopt --qnn-from-quant-types | diff - %t.plain.mlir

// Interfaces, casts from and to f32 values, and values between ops take the types; ui8 has signless storage.

// CHECK-LABEL: func.func @main(
// CHECK-SAME: %arg0: tensor<1x2x!quant.uniform<u8:f32, 5.000000e-01:3>> {qnn.name = "image"}
// CHECK-SAME: -> (tensor<1x2xf32>, tensor<1x2x!quant.uniform<i8:f32, 2.500000e-01:-3>>)
// CHECK-NEXT: %[[BITS:.*]] = quant.scast %arg0 : tensor<1x2x!quant.uniform<u8:f32, 5.000000e-01:3>> to tensor<1x2xi8>
// CHECK-NEXT: %[[QUANTIZED:.*]] = tensor.bitcast %[[BITS]] : tensor<1x2xi8> to tensor<1x2xui8>
// CHECK-NEXT: %[[NEW:.*]] = "qnn.requantize"(%[[QUANTIZED]])
// CHECK-NEXT: %[[TYPED:.*]] = quant.scast %[[NEW]] : tensor<1x2xi8> to tensor<1x2x!quant.uniform<i8:f32, 2.500000e-01:-3>>
// CHECK: %[[REAL:.*]] = quant.dcast %{{.*}} : tensor<1x2x!quant.uniform<i8:f32:1, {1.000000e-01:1,2.000000e-01}>> to tensor<1x2xf32>
// CHECK-NEXT: %{{.*}} = quant.qcast %[[REAL]] {{.*}}qnn.rounding = "half_away"
// CHECK: return %{{.*}}, %[[TYPED]]
func.func @main(%x: tensor<1x2xui8> {qnn.name = "image", qnn.scale = 0.5 : f64, qnn.zero_point = 3 : i64})
    -> (tensor<1x2xf32>, tensor<1x2xi8> {qnn.scale = 0.25 : f64, qnn.zero_point = -3 : i64}) {
  %0 = "qnn.requantize"(%x) {
    input_scale = 0.5 : f64, input_zero_points = array<i64: 3>, output_scale = 0.25 : f64,
    output_zero_point = -3 : i64, rounding = "fixed64_up"
  } : (tensor<1x2xui8>) -> tensor<1x2xi8>
  %1 = "qnn.dequantize"(%0) {axis = 1 : i64, scales = array<f64: 0.1, 0.2>, zero_points = array<i64: 1, 0>}
    : (tensor<1x2xi8>) -> tensor<1x2xf32>
  %2 = "qnn.quantize"(%1) {rounding = "half_away", scales = array<f64: 0.5>, zero_points = array<i64: 0>}
    : (tensor<1x2xf32>) -> tensor<1x2xi8>
  %3 = "qnn.dequantize"(%2) {scales = array<f64: 0.5>, zero_points = array<i64: 0>}
    : (tensor<1x2xi8>) -> tensor<1x2xf32>
  return %3, %0 : tensor<1x2xf32>, tensor<1x2xi8>
}
