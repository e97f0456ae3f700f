// REQUIRES: avx512_vbmi
// RUN: rm -rf %t.cache
// RUN: env QDIALECT_CACHE=%t.cache %qopt %s --tune --target=avx512vbmi -o %t.mlir 2>&1 | filecheck %s --check-prefix=TABLE
// RUN: filecheck %s --check-prefix=NOTE --input-file %t.mlir
// RUN: env QDIALECT_CACHE=%t.cache %qopt %s --tune --target=avx512vbmi --compile-to=linalg 2>&1 | filecheck %s --check-prefix=AGAIN
// RUN: %qopt %s --compile-to=linalg -o %t.linalg && not %qopt %t.linalg --tune 2>&1 | filecheck %s --check-prefix=PHASE
// RUN: not %qopt %s --tune --mcpu=sapphirerapids,+avx10 2>&1 | filecheck %s --check-prefix=UNKNOWN
// RUN: not %qrun %s --tune --batch dynamic 2>&1 | filecheck %s --check-prefix=DYNAMIC

// TABLE: kernel work model's choice us tried chosen won
// TABLE: kernel_{{[0-9]+}} 16 pixels, 32 channels, 16 taps #{{[0-9a-f]+}} {{[0-9]+}} rows x 2 vectors
// TABLE: 1 kernel measured,
// NOTE: qnn.tuning = {target = "avx512vbmi", variants = {
// AGAIN: 1 kernel measured (1 of them before),
// AGAIN: tunable = {candidates = ["{{[0-9]+}} rows x
// PHASE: error: module must be at phase qnn or fused, but is at linalg
// UNKNOWN: error: feature must be '+' or '-' and one of
// DYNAMIC: error: --tune must be given with a batch of one size, but got --batch dynamic
func.func @main(%x: tensor<16x16xui8>) -> tensor<16x32xi32> {
  %w = "qnn.constant"() {value = dense<3> : tensor<32x16xi8>} : () -> tensor<32x16xi8>
  %0 = "qnn.dense"(%x, %w) {
    input_scale = 0.5 : f64, input_zero_point = 0 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<16x16xui8>, tensor<32x16xi8>) -> tensor<16x32xi32>
  return %0 : tensor<16x32xi32>
}
