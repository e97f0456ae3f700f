// RUN: %qopt %s --compile-to=vector --target=avx512vbmi | filecheck %s
// RUN: %qopt %s --compile-to=vector --target=avx512vbmi | filecheck %s --check-prefix=CLEAN

// The contraction is one vector.contract in the innermost loop.  Its accumulator tile, 2 by 4 pixels by 2
// vectors by 16 lanes, starts at the bias and is carried through the reduction loops in registers; requantization and one store
// follow.

// CHECK-LABEL: func.func private @kernel_0(
// CHECK: scf.for
// CHECK: %[[BIAS:.*]] = vector.broadcast %{{.*}} : vector<1x2x16xi32> to vector<2x4x1x2x16xi32>
// CHECK-NEXT: %[[ROWS:.*]] = scf.for {{.*}} iter_args(%[[OUTER:.*]] = %[[BIAS]]) -> (vector<2x4x1x2x16xi32>)
// CHECK-NEXT: %[[KGROUPS:.*]] = scf.for {{.*}} iter_args(%[[ACC:.*]] = %[[OUTER]]) -> (vector<2x4x1x2x16xi32>)
// CHECK: arith.extui %{{.*}} : vector<2x4x1x1x4xi8> to vector<2x4x1x1x4xi32>
// CHECK: arith.extsi %{{.*}} : vector<1x1x1x2x16x4xi8> to vector<1x1x1x2x16x4xi32>
// CHECK: %[[NEXT:.*]] = vector.contract {{.*}} %[[ACC]] :
// CHECK-NEXT: scf.yield %[[NEXT]]
// CHECK: scf.yield %[[KGROUPS]]
// CHECK: arith.extui %[[ROWS]] : vector<2x4x1x2x16xi32> to vector<2x4x1x2x16xi64>
// CHECK: arith.trunci %{{.*}} to vector<2x4x1x2x16xi8>
// CHECK: vector.transfer_write
// CHECK-NOT: vector.transfer_write
// CHECK-LABEL: func.func @main(

// R8: no kernel allocates, and no tensor is left.
// CLEAN-LABEL: func.func private @kernel_0(
// CLEAN-NOT: memref.alloc
// CLEAN-NOT: tensor<
// CLEAN-NOT: linalg.
func.func @main(%x: tensor<1x6x6x8xui8>) -> tensor<1x4x4x32xui8> {
  %w = "qnn.constant"() {value = dense<3> : tensor<32x3x3x8xi8>} : () -> tensor<32x3x3x8xi8>
  %0 = "qnn.conv2d"(%x, %w) {
    input_scale = 0.5 : f64, input_zero_point = 7 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>,
    dilation = array<i64: 1, 1>, groups = 1 : i64
  } : (tensor<1x6x6x8xui8>, tensor<32x3x3x8xi8>) -> tensor<1x4x4x32xi32>
  %1 = "qnn.requantize"(%0) {
    input_scale = 0.5 : f64, weight_scales = array<f64: 0.25>, input_zero_points = array<i64: 0>,
    output_scale = 2.0 : f64, output_zero_point = 3 : i64, axis = 3 : i64, rounding = "fixed64_up", multiplier = "f64"
  } : (tensor<1x4x4x32xi32>) -> tensor<1x4x4x32xui8>
  return %1 : tensor<1x4x4x32xui8>
}
