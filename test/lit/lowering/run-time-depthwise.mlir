// RUN: %qopt %s --fuse-qnn --compile-to=linalg --target=avx512vnni | filecheck %s

// Covers R12: weights of a depthwise convolution that are known at run time alone become words, a vector of channels for
// each tap, and only products of a channel with its own weights are computed.

// CHECK: func.func private @[[WORDS:kernel_[0-9]+]](%arg0: memref<216xi8>, %arg1: memref<24xi16>, %arg2: memref<216xi16>)
// CHECK: arith.extui {{.*}} : i8 to i16
// CHECK: arith.subi {{.*}} : i16
// CHECK-LABEL: func.func @main(
// CHECK: qnn.label = "weights"
// CHECK: call @[[WORDS]]({{.*}}qnn.label = "weights"
// CHECK: qnn.label = "column sums"
// CHECK: qnn.label = "qnn.fused_conv2d"} : (memref<2400xi8>, memref<1536xi8>, {{.*}}memref<216xi16>
func.func @main(%x: tensor<1x8x8x24xui8>, %w: tensor<24x3x3x1xi8>) -> tensor<1x8x8x24xui8> {
  %0 = "qnn.conv2d"(%x, %w) {
    input_scale = 0.5 : f64, input_zero_point = 7 : i64, weight_scales = array<f64: 0.25>,
    padding = array<i64: 1, 1, 1, 1>, groups = 24 : i64
  } : (tensor<1x8x8x24xui8>, tensor<24x3x3x1xi8>) -> tensor<1x8x8x24xi32>
  %1 = "qnn.requantize"(%0) {
    input_scale = 0.5 : f64, weight_scales = array<f64: 0.25>, output_scale = 2.0 : f64, output_zero_point = 3 : i64,
    axis = 3 : i64, rounding = "fixed64_up"
  } : (tensor<1x8x8x24xi32>) -> tensor<1x8x8x24xui8>
  return %1 : tensor<1x8x8x24xui8>
}
