// RUN: %qopt %s --compile-to=linalg --target=avx512vbmi | filecheck %s --check-prefix=LINALG
// RUN: %qopt %s --compile-to=x86 --target=avx512vnni | filecheck %s
// RUN: %qopt %s --compile-to=x86 --target=generic | filecheck %s

// R9: depthwise convolution has its own kernel: vectors along the channels, one multiply and add per tap, exact in 32
// bits with the weights' zero point subtracted beforehand.  24 channels are a vector of 16 and one of 8.

// LINALG-LABEL: func.func private @kernel_2(
// LINALG: memref.reinterpret_cast %{{.*}} sizes: [6, 7, 3, 3, 16], strides: [216, 24, 216, 24, 1]
// LINALG: qnn.role = "contraction", qnn.tiles = array<i64: 0, 0, 0, 1, 1>
// LINALG: memref.reinterpret_cast %{{.*}} sizes: [6, 7, 3, 3, 8], strides: [216, 24, 216, 24, 1]

// CHECK-LABEL: func.func private @kernel_2(
// CHECK: iter_args({{.*}}) -> (vector<1x{{[0-9]+}}x16xi32>)
// CHECK: arith.extui %{{.*}} to vector<{{.*}}x16xi32>
// CHECK: arith.muli %{{.*}} : vector<1x{{[0-9]+}}x16xi32>
// CHECK-NEXT: arith.addi %{{.*}} : vector<1x{{[0-9]+}}x16xi32>
// CHECK-NEXT: scf.yield
// CHECK: arith.muli %{{.*}} : vector<1x{{[0-9]+}}x8xi32>
// CHECK-NEXT: arith.addi %{{.*}} : vector<1x{{[0-9]+}}x8xi32>
// CHECK-NOT: vector.contract
// CHECK-NOT: llvm.x86
// CHECK-LABEL: func.func @main(
func.func @main(%x: tensor<1x6x7x24xui8>) -> tensor<1x6x7x24xui8> {
  %w0 = "qnn.constant"() {value = dense<3> : tensor<24x3x3x1xui8>} : () -> tensor<24x3x3x1xui8>
  %0 = "qnn.conv2d"(%x, %w0) {
    input_scale = 0.5 : f64, input_zero_point = 7 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 2>, strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>,
    dilation = array<i64: 1, 1>, groups = 24 : i64
  } : (tensor<1x6x7x24xui8>, tensor<24x3x3x1xui8>) -> tensor<1x6x7x24xi32>
  %1 = "qnn.requantize"(%0) {
    input_scale = 0.5 : f64, weight_scales = array<f64: 0.25>, input_zero_points = array<i64: 0>,
    output_scale = 2.0 : f64, output_zero_point = 3 : i64, axis = 3 : i64, rounding = "fixed64_up", multiplier = "f64"
  } : (tensor<1x6x7x24xi32>) -> tensor<1x6x7x24xui8>
  return %1 : tensor<1x6x7x24xui8>
}
