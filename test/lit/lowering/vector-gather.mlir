// RUN: %qopt %s --compile-to=linalg --target=avx512vbmi | filecheck %s --check-prefix=LINALG
// RUN: %qopt %s --compile-to=vector --target=avx512vbmi | filecheck %s --check-prefix=VECTOR
// RUN: %qopt %s --compile-to=x86 --target=avx512vbmi | filecheck %s --check-prefix=VBMI
// RUN: %qopt %s --compile-to=x86 --target=avx512vnni | filecheck %s --check-prefix=VNNI

// R1: conv2d, requantize and a table-based activation are one kernel, and no intermediate lives in memory.  The table
// is read inside the tile loop: tensor.extract in the epilogue, then vector.gather, then permutes of registers.

// LINALG-LABEL: func.func private @kernel_0(
// LINALG: linalg.generic
// LINALG-SAME: "contraction_fill"
// LINALG: linalg.generic
// LINALG-SAME: "contraction"
// LINALG: linalg.generic
// LINALG-SAME: "root"
// LINALG: tensor.extract %{{.*}} : tensor<256xi8>
// LINALG: linalg.yield
// LINALG-NOT: linalg.generic
// LINALG-NOT: @kernel_1
// LINALG-LABEL: func.func @main(
// LINALG: call @kernel_0(
// LINALG-NOT: call

// VECTOR-LABEL: func.func private @kernel_0(
// VECTOR: vector.contract
// VECTOR: %[[FOUND:.*]] = vector.gather %{{.*}} : memref<256xi8>, {{.*}} into vector<4x1x4x16xi8>
// VECTOR-NEXT: vector.transfer_write %[[FOUND]]
// VECTOR-LABEL: func.func @main(

// VBMI: vpdpbusd.512
// VBMI: packssdw.512
// VBMI: packuswb.512
// VBMI: vpermi2var.qi.512
// VBMI-NOT: vector.gather

// Without VBMI the packed bytes are looked up by shuffles.
// VNNI: vpdpbusd.512
// VNNI: packssdw.512
// VNNI: packuswb.512
// VNNI: pshuf.b.512
// VNNI-NOT: vector.gather
// VNNI-NOT: vpermi2var
func.func @main(%x: tensor<1x1x4x8xui8>) -> tensor<1x1x4x64xui8> {
  %w = "qnn.constant"() {value = dense<3> : tensor<64x1x1x8xi8>} : () -> tensor<64x1x1x8xi8>
  %0 = "qnn.conv2d"(%x, %w) {
    input_scale = 0.5 : f64, input_zero_point = 7 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>,
    dilation = array<i64: 1, 1>, groups = 1 : i64
  } : (tensor<1x1x4x8xui8>, tensor<64x1x1x8xi8>) -> tensor<1x1x4x64xi32>
  %1 = "qnn.requantize"(%0) {
    input_scale = 0.5 : f64, weight_scales = array<f64: 0.25>, input_zero_points = array<i64: 0>,
    output_scale = 2.0 : f64, output_zero_point = 3 : i64, axis = 3 : i64, rounding = "fixed64_up", multiplier = "f64"
  } : (tensor<1x1x4x64xi32>) -> tensor<1x1x4x64xui8>
  %2 = "qnn.sigmoid"(%1) {
    input_scale = 2.0 : f64, input_zero_point = 3 : i64, output_scale = 0.00390625 : f64, output_zero_point = 0 : i64,
    entries = "half_away_divide", nan = "max"
  } : (tensor<1x1x4x64xui8>) -> tensor<1x1x4x64xui8>
  return %2 : tensor<1x1x4x64xui8>
}
