// RUN: %qopt %s --fuse-qnn '--qnn-outline-fused=target=npu' | filecheck %s
// RUN: %qopt %s --fuse-qnn '--qnn-outline-fused=target=npu merge=true' | filecheck %s --check-prefix=MERGED
// RUN: %qopt %s --fuse-qnn '--qnn-outline-fused=target=npu' --qnn-decompose-fused | filecheck %s
// RUN: %qopt %s --fuse-qnn '--qnn-outline-fused=target=npu' --qnn-inline-outlined=keep-extern | filecheck %s
// RUN: %qopt %s --fuse-qnn '--qnn-outline-fused=target=npu' --qnn-inline-outlined | filecheck %s --check-prefix=BACK
// RUN: %qopt %s --fuse-qnn '--qnn-outline-fused=target=npu' --compile-to=linalg --target=generic | filecheck %s --check-prefix=LINALG
// RUN: not %qopt %s --fuse-qnn '--qnn-outline-fused=target=npu predicate=nowhere:takes' 2>&1 | filecheck %s --check-prefix=NOWHERE

// Covers R13: a fused op goes to a target, whose library computes it when the network runs.

// CHECK-LABEL: func.func private @main_fused_dense_0(
// CHECK-SAME: qnn.external = "qnn.fused_dense"
// CHECK-SAME: qnn.external_target = "npu"
// CHECK-SAME: qnn.symbol = "npu_fused_dense"
// CHECK: "qnn.fused_dense"(%arg0,
// CHECK-LABEL: func.func private @main_fused_dense_1(
// CHECK-LABEL: func.func @main(
// CHECK-NEXT: %0 = call @main_fused_dense_0(%arg0)
// CHECK-NEXT: %1 = call @main_fused_dense_1(%0)
// CHECK-NEXT: return %1
// MERGED-LABEL: func.func private @main_region_0(
// MERGED-SAME: qnn.external = "qnn.region"
// MERGED-SAME: qnn.parameters = [{{.*}}input_scale{{.*}}input_scale
// MERGED-SAME: qnn.symbol = "npu_region"
// MERGED: "qnn.fused_dense"(%arg0,
// MERGED: "qnn.fused_dense"(%2,
// MERGED-LABEL: func.func @main(
// MERGED-NEXT: %0 = call @main_region_0(%arg0)
// MERGED-NEXT: return %0
// BACK-NOT: private
// BACK-LABEL: func.func @main(
// BACK-NOT: call
// LINALG: func.func private @kernel_1(
// LINALG: scf.if
// LINALG: func.call @npu_fused_dense({{.*}}) : (i64, i64, i64) -> i32
// LINALG-LABEL: func.func @main(
// LINALG-COUNT-2: qnn.label = "npu_fused_dense"
// LINALG: func.func private @npu_fused_dense(i64, i64, i64) -> i32
// NOWHERE: option 'predicate' of 'qnn-outline-fused' cannot be found: ModuleNotFoundError: No module named 'nowhere'
func.func @main(%x: tensor<2x8xi8>) -> tensor<2x8xi8> {
  %w = "qnn.constant"() {value = dense<3> : tensor<8x8xi8>} : () -> tensor<8x8xi8>
  %b = "qnn.constant"() {value = dense<7> : tensor<8xi32>} : () -> tensor<8xi32>
  %0 = "qnn.dense"(%x, %w, %b) {
    input_scale = 0.25 : f64, input_zero_point = 3 : i64, weight_scales = array<f64: 0.5>,
    weight_zero_points = array<i64: 0>
  } : (tensor<2x8xi8>, tensor<8x8xi8>, tensor<8xi32>) -> tensor<2x8xi32>
  %1 = "qnn.requantize"(%0) {
    axis = 1 : i64, input_scale = 0.25 : f64, input_zero_points = array<i64: 0>, multiplier = "f64",
    output_scale = 0.25 : f64, output_zero_point = 3 : i64, rounding = "fixed64_up", weight_scales = array<f64: 0.5>
  } : (tensor<2x8xi32>) -> tensor<2x8xi8>
  %2 = "qnn.dense"(%1, %w, %b) {
    input_scale = 0.25 : f64, input_zero_point = 3 : i64, weight_scales = array<f64: 0.5>,
    weight_zero_points = array<i64: 0>
  } : (tensor<2x8xi8>, tensor<8x8xi8>, tensor<8xi32>) -> tensor<2x8xi32>
  %3 = "qnn.requantize"(%2) {
    axis = 1 : i64, input_scale = 0.25 : f64, input_zero_points = array<i64: 0>, multiplier = "f64",
    output_scale = 0.5 : f64, output_zero_point = 10 : i64, rounding = "fixed64_up", weight_scales = array<f64: 0.5>
  } : (tensor<2x8xi32>) -> tensor<2x8xi8>
  return %3 : tensor<2x8xi8>
}
