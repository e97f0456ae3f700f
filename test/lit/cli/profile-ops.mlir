// The time of every kernel, as a table.
//
// RUN: %qrun %s --benchmark --profile-ops | filecheck %s
// RUN: %qrun %s --benchmark --profile-ops --target generic | filecheck %s --check-prefix=GENERIC
//
// CHECK: ms a call (median), 0.000576 million multiply-accumulates
// CHECK: #  op {{.*}} time us  of call {{.*}} MMAC  GMAC/s  of peak  of bound  cycles  predicted  bytes {{.*}} GB/s  limit {{.*}} kernel {{.*}} nodes
// CHECK-NEXT: 0  input 0
// CHECK-NEXT: 1  qnn.fused_dense {{.*}} %  0.001
// CHECK-SAME: kernel_1_fc  fc;bias
// CHECK-NEXT: output 0
// CHECK-NEXT: total {{.*}}  100.0 %  0.001
// CHECK-NEXT: time: middle half of {{[0-9]+}} calls, in place; bytes: read and written, constants included
//
// RUN: %qrun %s --trace %t.json && filecheck %s --input-file %t.json --check-prefix=TRACE
// TRACE: "process_name"
// TRACE: "name": "kernel_1_fc"
//
// GENERIC: 1  qnn.fused_dense
//
// RUN: not %qrun %s --profile-ops 2>&1 | filecheck %s --check-prefix=ALONE
//
// ALONE: error: --profile-ops must be given with --benchmark

func.func @main(%x: tensor<4x12xi8>) -> tensor<4x12xi8> {
  %w = "qnn.constant"() {value = dense<-3> : tensor<12x12xi8>} : () -> tensor<12x12xi8>
  %acc = "qnn.dense"(%x, %w) {
    input_scale = 0.5 : f64, input_zero_point = 1 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<4x12xi8>, tensor<12x12xi8>) -> tensor<4x12xi32> loc("fc;bias")
  %y = "qnn.requantize"(%acc) {
    input_scale = 0.5 : f64, weight_scales = array<f64: 0.25>, input_zero_points = array<i64: 0>,
    output_scale = 2.0 : f64, output_zero_point = 0 : i64, axis = 1 : i64, rounding = "fixed64_up", multiplier = "f64"
  } : (tensor<4x12xi32>) -> tensor<4x12xi8> loc("fc;bias")
  return %y : tensor<4x12xi8>
}
