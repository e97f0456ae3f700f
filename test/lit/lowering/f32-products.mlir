// RUN: %qopt %s --compile-to=linalg --target=avx512vbmi | filecheck %s
// RUN: %qopt %s --compile-to=vector --target=avx512vbmi | filecheck %s --check-prefix=VECTOR

// A product of floats is added by a fused multiply-add, one that is rounded by an addition: in tiles as in scalar loops.

// CHECK-LABEL: func.func private @kernel_1(
// CHECK: iterator_types = [{{.*}}"reduction", "reduction"]
// CHECK: %[[SUM:.*]] = math.fma %in, %{{.*}}, %out : f32
// CHECK-NEXT: linalg.yield %[[SUM]]
// CHECK-LABEL: func.func private @kernel_2(
// CHECK: %[[PRODUCT:.*]] = arith.mulf %in, %{{.*}} : f32
// CHECK-NEXT: %[[SUM:.*]] = arith.addf %out, %[[PRODUCT]] : f32
// CHECK-NEXT: linalg.yield %[[SUM]]

// VECTOR-LABEL: func.func private @kernel_1(
// VECTOR: %[[TOTAL:.*]] = math.fma %{{.*}}, %{{.*}}, %{{.*}} : vector<{{.*}}xf32>
// VECTOR-NEXT: scf.yield %[[TOTAL]]
// VECTOR-NOT: vector.contract
// VECTOR-LABEL: func.func private @kernel_2(
// VECTOR: %[[PRODUCT:.*]] = arith.mulf %{{.*}}, %{{.*}} : vector<{{.*}}xf32>
// VECTOR-NEXT: %[[TOTAL:.*]] = arith.addf %{{.*}}, %[[PRODUCT]] : vector<{{.*}}xf32>
// VECTOR-NEXT: scf.yield %[[TOTAL]]
// VECTOR-NOT: vector.contract
// Constant weights are packed: all terms of two vectors of columns, then of the next.  Sums of many terms lie in memory
// between two steps.

// CHECK-LABEL: func.func private @kernel_{{.*}}%{{.*}}: memref<70656xf32>{{.*}}qnn.scratch
// CHECK: sizes: [2, 1104, 2, 16, 1], strides: [35328, 32, 16, 1, 1]
// VECTOR-LABEL: func.func private @kernel_{{.*}}memref<70656xf32>
// VECTOR: scf.for {{.*}} = %c0 to %c2{{.*}}
// VECTOR: scf.for {{.*}} = %c0 to %c2{{.*}}
// VECTOR: scf.for {{.*}} = %c0 to %c384 {{.*}} iter_args({{.*}}vector<12x1x2x16xf32>
// VECTOR: scf.for {{.*}} = %c0 to %c336 {{.*}} iter_args({{.*}}vector<12x1x2x16xf32>
func.func @main(%x: tensor<5x7xf32>, %y: tensor<7x32xf32>, %z: tensor<24x1104xf32>)
    -> (tensor<5x32xf32>, tensor<5x32xf32>, tensor<24x64xf32>) {
  %0 = "qnn.f32_matmul"(%x, %y) : (tensor<5x7xf32>, tensor<7x32xf32>) -> tensor<5x32xf32>
  %1 = "qnn.f32_matmul"(%x, %y) {rounded_products = true} : (tensor<5x7xf32>, tensor<7x32xf32>) -> tensor<5x32xf32>
  %w = arith.constant dense<0.5> : tensor<1104x64xf32>
  %2 = "qnn.f32_matmul"(%z, %w) : (tensor<24x1104xf32>, tensor<1104x64xf32>) -> tensor<24x64xf32>
  return %0, %1, %2 : tensor<5x32xf32>, tensor<5x32xf32>, tensor<24x64xf32>
}
