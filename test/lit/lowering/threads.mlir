// RUN: %qopt %s --compile-to=vector --threads=2 --target=avx512vbmi | filecheck %s
// RUN: %qopt %s --compile-to=llvm --threads=2 --target=avx512vbmi | filecheck %s --check-prefix=LLVM
// RUN: %qopt %s --compile-to=vector --threads=1 --target=avx512vbmi | filecheck %s --check-prefix=ONE

// With more than one thread `main` is one parallel region, in which each thread calls kernels for its parts.

// All micro-kernels of a kernel are cut at the same place of what they write: the row above the image is the first part's, the
// one below the second's, and of the 30 borders between rows each has a half.
// CHECK: memref.global "private" constant @kernel_0_parts : memref<3x3xindex>
// CHECK-SAME: dense<{{\[\[}}0, 19, 19], [0, 15, 30], [0, 0, 19]]>

// The copy of the input costs little, but half of it would be read from the other core's cache.
// CHECK: memref.global "private" constant @kernel_1_parts : memref<1x3xindex> = dense<{{\[\[}}0, 248, 496]]>

// A kernel reads from a table where its part begins and ends: 31 rows of 4 tiles are 62 tiles a part, so that the middle
// row is cut in two. A part is five chunks.
// CHECK: memref.global "private" constant @kernel_2_parts : memref<1x11xindex>
// CHECK-SAME: dense<{{\[\[}}0, 12, 25, 37, 50, 62, 74, 87, 99, 112, 124]]>
// CHECK-LABEL: func.func private @kernel_2(
// CHECK-SAME: %[[PART:arg[0-9]+]]: index) {
// CHECK: %[[FIRST:.*]] = memref.load %{{.*}}[%c0, %[[PART]]] : memref<1x11xindex>
// CHECK: %[[LAST:.*]] = memref.load %{{.*}} : memref<1x11xindex>
// CHECK: %[[LOWER:.*]] = arith.divui %[[FIRST]], %c4
// CHECK: %[[UPPER:.*]] = arith.divui %{{.*}}, %c4
// CHECK: scf.for %[[ROW:.*]] = %[[LOWER]] to %[[UPPER]] step %c1 {
// CHECK: %[[BEFORE:.*]] = arith.muli %[[ROW]], %c4
// CHECK: arith.subi %[[FIRST]], %[[BEFORE]]
// CHECK: arith.maxsi
// CHECK: arith.subi %[[LAST]], %[[BEFORE]]
// CHECK: arith.minsi
// CHECK: scf.for %{{.*}} = %{{.*}} to %{{.*}} step %c4 {
// CHECK: vector.contract

// Padding and input touch different bytes and run side by side; the convolution waits for both.
// CHECK-LABEL: func.func @main(
// CHECK: omp.parallel num_threads(%c2_i32 : i32) {
// CHECK: %[[ID:.*]] = func.call @omp_get_thread_num()
// CHECK-NEXT: %[[THREAD:.*]] = arith.index_cast %[[ID]]
// CHECK: %[[COUNT:.*]] = func.call @omp_get_num_threads()
// CHECK-NEXT: %[[THREADS:.*]] = arith.index_cast %[[COUNT]]
// CHECK-NEXT: scf.for %[[CLEARED:.*]] = %[[THREAD]] to %c2 step %[[THREADS]] {
// CHECK: memref.store %c0_i64
// CHECK: scf.for %[[P:.*]] = %[[THREAD]] to %c2 step %[[THREADS]] {
// CHECK-NEXT: func.call @kernel_0({{.*}}, %[[P]])
// CHECK-NOT: omp.barrier
// CHECK: scf.for %[[Q:.*]] = %[[THREAD]] to %c2 step %[[THREADS]] {
// CHECK-NEXT: func.call @kernel_1({{.*}}, %[[Q]])
// Each thread counts the chunks that it takes: of its own part first, then of the other one.
// CHECK: omp.barrier
// CHECK-NEXT: scf.for %[[I:.*]] = %c0 to %c2 step %c1 {
// CHECK-NEXT: %[[BEHIND:.*]] = arith.addi %[[THREAD]], %[[I]]
// CHECK-NEXT: %[[VICTIM:.*]] = arith.remui %[[BEHIND]], %c2
// CHECK: %[[TAKEN:.*]] = scf.while : () -> index {
// CHECK: memref.atomic_rmw addi %c1_i64
// CHECK: arith.cmpi ult, %{{.*}}, %c5
// CHECK: arith.muli %[[VICTIM]], %c5
// CHECK: func.call @kernel_2(
// CHECK: omp.terminator

// The region is a function that the runtime calls. Threads that wait for each other look at a counter of the call, and then
// sleep. The record in the workspace begins with the address of the code, and says for how long calls ask for one thread.
// LLVM: llvm.func @main_of_thread(
// LLVM: %[[FIRST:.*]] = llvm.mlir.constant(1 : i32) : i32
// LLVM: llvm.call @wait_for_threads(%arg4, %[[FIRST]])
// LLVM: llvm.func internal @wait_for_threads(
// LLVM: llvm.atomicrmw add %{{.*}} seq_cst
// LLVM: llvm.inline_asm has_side_effects "pause"
// LLVM: llvm.inline_asm has_side_effects "syscall"
// LLVM: llvm.func @main(
// LLVM: llvm.icmp "eq"
// LLVM: %[[LEFT:.*]] = llvm.load
// LLVM: %[[PAUSE:.*]] = llvm.icmp "ne" %[[LEFT]]
// LLVM: %[[COUNT:.*]] = llvm.select %[[PAUSE]]
// LLVM: llvm.call @GOMP_parallel(%{{.*}}, %{{.*}}, %[[COUNT]],

// ONE-NOT: omp.
// ONE-NOT: _parts
// ONE: func.func @main(
func.func @main(%x: tensor<1x31x16x64xui8>) -> tensor<1x31x16x64xui8> {
  %w = "qnn.constant"() {value = dense<3> : tensor<64x3x3x64xi8>} : () -> tensor<64x3x3x64xi8>
  %0 = "qnn.conv2d"(%x, %w) {
    input_scale = 0.5 : f64, input_zero_point = 7 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>,
    dilation = array<i64: 1, 1>, groups = 1 : i64
  } : (tensor<1x31x16x64xui8>, tensor<64x3x3x64xi8>) -> tensor<1x31x16x64xi32>
  %1 = "qnn.requantize"(%0) {
    input_scale = 0.5 : f64, weight_scales = array<f64: 0.25>, input_zero_points = array<i64: 0>,
    output_scale = 2.0 : f64, output_zero_point = 3 : i64, axis = 3 : i64, rounding = "fixed64_up", multiplier = "f64"
  } : (tensor<1x31x16x64xi32>) -> tensor<1x31x16x64xui8>
  return %1 : tensor<1x31x16x64xui8>
}
