// RUN: %qopt %s --compile-to=linalg --target=avx512vbmi --split-input-file | filecheck %s

// Weights of quarters: the rows are blended once for all columns, in 16 bits; then the cells between the same two
// columns are one nest.

// CHECK-LABEL: func.func private @kernel_0
// CHECK: scf.for
// CHECK: linalg.generic {{.*}} ins({{.*}} : tensor<32xi8>, tensor<32xi8>) outs({{.*}} : tensor<32xi16>)
// CHECK: linalg.generic {{.*}} ins({{.*}} : tensor<16xi16>, tensor<16xi16>, tensor<3xi16>) outs({{.*}} : tensor<3x16xi8>)
// CHECK: linalg.generic {{.*}} ins({{.*}} : tensor<16xi16>, tensor<16xi16>, tensor<i16>) outs({{.*}} : tensor<16xi8>)
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @main(%input: tensor<1x2x2x16xi8>) -> tensor<1x4x4x16xi8> {
  %y = "qnn.resize_bilinear"(%input) {
    size = array<i64: 4, 4>, coordinates = "half_pixel", arithmetic = "tflite_fixed"
  } : (tensor<1x2x2x16xi8>) -> tensor<1x4x4x16xi8>
  return %y : tensor<1x4x4x16xi8>
}

// -----

// No pattern among the columns: each one is looked up.

// CHECK-LABEL: func.func private @kernel_0
// CHECK: scf.for
// CHECK: linalg.generic {{.*}} outs({{.*}} : tensor<{{.*}}xi32>)
// CHECK: scf.for
// CHECK: linalg.generic {{.*}} ins({{.*}} : tensor<16xi32>, tensor<16xi32>) outs({{.*}} : tensor<16xi8>)
func.func @main(%input: tensor<1x7x7x16xi8>) -> tensor<1x10x10x16xi8> {
  %y = "qnn.resize_bilinear"(%input) {
    size = array<i64: 10, 10>, coordinates = "half_pixel", arithmetic = "tflite_fixed"
  } : (tensor<1x7x7x16xi8>) -> tensor<1x10x10x16xi8>
  return %y : tensor<1x10x10x16xi8>
}
