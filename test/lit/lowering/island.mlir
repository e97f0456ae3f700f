// RUN: %qopt %s --compile-to=linalg --target=avx512vbmi | filecheck %s
// RUN: %qopt %s --compile-to=vector --target=avx512vbmi | filecheck %s --check-prefix=VECTOR

// What lies between quantized values and quantized values is one kernel: bytes in, bytes out, no tensor of f32 values.

// CHECK-LABEL: func.func private @kernel_0(
// CHECK-SAME: memref<64xi8>
// CHECK-NOT: memref<64xf32>
// CHECK: linalg.generic
// CHECK-NOT: linalg.generic
// CHECK-LABEL: func.func @main(
// CHECK: {qnn.label = "qnn.quantize"}
// CHECK-NOT: qnn.label

// VECTOR-LABEL: func.func private @kernel_0(
// VECTOR: vector.transfer_read {{.*}} vector<1x16xi8>
// VECTOR: math.fma {{.*}} vector<1x16xf32>
// VECTOR: vector.transfer_write {{.*}} vector<1x16xi8>
// VECTOR-NOT: math.exp
func.func @main(%x: tensor<4x16xui8>) -> tensor<4x16xui8> {
  %0 = "qnn.dequantize"(%x) {
    scales = array<f64: 0.05>, zero_points = array<i64: 100>, axis = 0 : i64
  } : (tensor<4x16xui8>) -> tensor<4x16xf32>
  %1 = math.exp %0 : tensor<4x16xf32>
  %2 = arith.constant dense<[[1.0], [2.0], [-1.0], [3.0]]> : tensor<4x1xf32>
  %3 = "qnn.broadcast"(%2) {shape = array<i64: 4, 16>} : (tensor<4x1xf32>) -> tensor<4x16xf32>
  %4 = arith.mulf %1, %3 : tensor<4x16xf32>
  %5 = "qnn.quantize"(%4) {
    scales = array<f64: 0.1>, zero_points = array<i64: 3>, axis = 0 : i64, rounding = "half_even",
    scaling = "divide", nan = "min"
  } : (tensor<4x16xf32>) -> tensor<4x16xui8>
  return %5 : tensor<4x16xui8>
}
