// A model is compiled and run; outputs are a table, files, and a comparison with the reference.
//
// RUN: %qrun %s --seed 3 --reference | filecheck %s
// RUN: %qrun %s --seed 3 --output-dir %t.a
// RUN: %qrun %s --seed 3 --target generic --output-dir %t.b
// RUN: cmp %t.a/output0.npy %t.b/output0.npy
// RUN: %qrun %s --seed 3 --threads 3 --output-dir %t.c
// RUN: cmp %t.a/output0.npy %t.c/output0.npy
// RUN: %qrun %s --input %t.a/output0.npy --reference | filecheck %s
// RUN: %qrun %s --benchmark | filecheck %s --check-prefix=SPEED
// RUN: %qrun --help | filecheck %s --check-prefix=HELP
//
// CHECK: compiled in {{.*}} kernels in {{.*}} calls
// CHECK-NEXT: memory: {{[0-9]+}} bytes of constants, {{[0-9]+}} bytes of working memory
// CHECK: output  shape  dtype  min  max  values
// CHECK-NEXT: scores  1x12   int8
// CHECK-SAME: largest at
// CHECK: scores: 0 of 12 elements differ from the reference
//
// SPEED: ms a call (median), 0.000144 million multiply-accumulates
//
// HELP: examples:
// HELP: qdialect-run model.tflite --benchmark
//
// RUN: not %qrun %s --input %S/Inputs/nothing.npy 2>&1 | filecheck %s --check-prefix=ABSENT
// RUN: not %qrun %s --input %s 2>&1 | filecheck %s --check-prefix=NO-ARRAY
// RUN: not %qrun %s --input %t.a/output0.npy %t.a/output0.npy 2>&1 | filecheck %s --check-prefix=COUNT
// RUN: not %qrun %s --target vax 2>&1 | filecheck %s --check-prefix=TARGET
// RUN: not %qrun %s --seed -1 2>&1 | filecheck %s --check-prefix=SEED
// RUN: not %qrun %s --threads 0 2>&1 | filecheck %s --check-prefix=THREADS
// RUN: not %qrun %s --threads 2 --benchmark --profile-ops 2>&1 | filecheck %s --check-prefix=CLOCK
// RUN: not env QDIALECT_OPENMP=/nowhere.so %qrun %s --threads 2 2>&1 | filecheck %s --check-prefix=RUNTIME
// RUN: not %qrun %s --output-dir %s 2>&1 | filecheck %s --check-prefix=FOLDER
// RUN: not %qrun %S/nothing.mlir 2>&1 | filecheck %s --check-prefix=MODEL
// RUN: not %qrun %S/nothing.bin 2>&1 | filecheck %s --check-prefix=KIND
//
// ABSENT: error: cannot read '{{.*}}nothing.npy' as a .npy file
// NO-ARRAY: error: cannot read '{{.*}}run.mlir' as a .npy file
// COUNT: error: network must be called with 1 input, but got 2
// TARGET: error: target must be one of host, generic
// SEED: error: argument --seed: must be an integer of at least 0, but got '-1'
// THREADS: error: argument --threads: must be an integer from 1 to 256, but got 0
// CLOCK: error: --profile-ops measures one thread, and must be given without --threads
// RUNTIME: error: OpenMP runtime that QDIALECT_OPENMP names cannot be loaded: /nowhere.so
// FOLDER: error: cannot make folder
// MODEL: error: cannot read '{{.*}}nothing.mlir'
// KIND: error: '{{.*}}nothing.bin' must be a model of kind .mlir, .tflite, .onnx or .pt2, but got '.bin'

func.func @main(%x: tensor<1x12xi8> {qnn.name = "image"}) -> (tensor<1x12xi8> {qnn.name = "scores"}) {
  %w = "qnn.constant"() {value = dense<-3> : tensor<12x12xi8>} : () -> tensor<12x12xi8>
  %b = "qnn.constant"() {value = dense<[0, 100, 200, 300, 400, 500, 600, 700, 800, 900, 1000, 1100]> : tensor<12xi32>} : () -> tensor<12xi32>
  %acc = "qnn.dense"(%x, %w, %b) {input_scale = 0.5 : f64, input_zero_point = 1 : i64, weight_scales = array<f64: 0.25>, weight_zero_points = array<i64: 0>} : (tensor<1x12xi8>, tensor<12x12xi8>, tensor<12xi32>) -> tensor<1x12xi32>
  %y = "qnn.requantize"(%acc) {input_scale = 0.5 : f64, weight_scales = array<f64: 0.25>, input_zero_points = array<i64: 0>, output_scale = 2.0 : f64, output_zero_point = 0 : i64, axis = 1 : i64, rounding = "fixed64_up", multiplier = "f64"} : (tensor<1x12xi32>) -> tensor<1x12xi8>
  return %y : tensor<1x12xi8>
}
