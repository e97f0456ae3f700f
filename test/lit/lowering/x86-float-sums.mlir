// RUN: %qopt %s --split-input-file --pass-pipeline="qnn-to-x86{target=avx2}" | filecheck %s

// A loop over a run of K groups of noted weights starts at zero and adds up the bits as floats; what it started at is
// added as integers. Meanwhile the thread flushes nothing.

// CHECK-LABEL: func.func @run(
// CHECK-DAG: %[[ZERO:.*]] = arith.constant dense<0> : vector<2x1x8xi32>
// CHECK-DAG: %[[DEFAULT:.*]] = arith.constant 8064 : i32
// CHECK: llvm.x86.sse.stmxcsr
// CHECK: memref.store %[[DEFAULT]]
// CHECK: llvm.x86.sse.ldmxcsr
// CHECK: %[[SUMS:.*]] = scf.for {{.*}} iter_args(%{{.*}} = %[[ZERO]])
// CHECK: %[[PRODUCTS:.*]] = llvm.call_intrinsic "llvm.x86.avx2.pmadd.wd"
// CHECK: arith.addf %{{.*}}, %{{.*}} : vector<8xf32>
// CHECK: arith.addf %{{.*}}, %{{.*}} : vector<8xf32>
// CHECK-NOT: arith.addf
// CHECK: arith.addi %{{.*}}, %[[SUMS]] : vector<2x1x8xi32>
// CHECK: llvm.x86.sse.ldmxcsr
// CHECK: return
#data = affine_map<(r, v, l, k, p) -> (r, k, p)>
#weights = affine_map<(r, v, l, k, p) -> (k, v, l, p)>
#sums = affine_map<(r, v, l, k, p) -> (r, v, l)>
func.func @run(%x: memref<2x64x2xi16>, %w: memref<64x1x8x2xi16> {qnn.float_run = 64 : i64}, %y: memref<2x1x8xi32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %p = arith.constant 0 : i16
  %i = arith.constant 0 : i32
  %start = vector.transfer_read %y[%c0, %c0, %c0], %i {in_bounds = [true, true, true]} : memref<2x1x8xi32>, vector<2x1x8xi32>
  %r = scf.for %k = %c0 to %c64 step %c1 iter_args(%acc = %start) -> (vector<2x1x8xi32>) {
    %a = vector.transfer_read %x[%c0, %k, %c0], %p {in_bounds = [true, true, true]} : memref<2x64x2xi16>, vector<2x1x2xi16>
    %b = vector.transfer_read %w[%k, %c0, %c0, %c0], %p {in_bounds = [true, true, true, true]} : memref<64x1x8x2xi16>, vector<1x1x8x2xi16>
    %a32 = arith.extsi %a : vector<2x1x2xi16> to vector<2x1x2xi32>
    %b32 = arith.extsi %b : vector<1x1x8x2xi16> to vector<1x1x8x2xi32>
    %s = vector.contract {indexing_maps = [#data, #weights, #sums], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"], kind = #vector.kind<add>} %a32, %b32, %acc : vector<2x1x2xi32>, vector<1x1x8x2xi32> into vector<2x1x8xi32>
    scf.yield %s : vector<2x1x8xi32>
  }
  vector.transfer_write %r, %y[%c0, %c0, %c0] {in_bounds = [true, true, true]} : vector<2x1x8xi32>, memref<2x1x8xi32>
  return
}

// -----

// A note on a shorter run says nothing of this loop.

// CHECK-LABEL: func.func @other_run(
// CHECK-NOT: arith.addf
// CHECK-NOT: mxcsr
// CHECK: return
#data = affine_map<(r, v, l, k, p) -> (r, k, p)>
#weights = affine_map<(r, v, l, k, p) -> (k, v, l, p)>
#sums = affine_map<(r, v, l, k, p) -> (r, v, l)>
func.func @other_run(%x: memref<2x64x2xi16>, %w: memref<64x1x8x2xi16> {qnn.float_run = 32 : i64}, %y: memref<2x1x8xi32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %p = arith.constant 0 : i16
  %i = arith.constant 0 : i32
  %start = vector.transfer_read %y[%c0, %c0, %c0], %i {in_bounds = [true, true, true]} : memref<2x1x8xi32>, vector<2x1x8xi32>
  %r = scf.for %k = %c0 to %c64 step %c1 iter_args(%acc = %start) -> (vector<2x1x8xi32>) {
    %a = vector.transfer_read %x[%c0, %k, %c0], %p {in_bounds = [true, true, true]} : memref<2x64x2xi16>, vector<2x1x2xi16>
    %b = vector.transfer_read %w[%k, %c0, %c0, %c0], %p {in_bounds = [true, true, true, true]} : memref<64x1x8x2xi16>, vector<1x1x8x2xi16>
    %a32 = arith.extsi %a : vector<2x1x2xi16> to vector<2x1x2xi32>
    %b32 = arith.extsi %b : vector<1x1x8x2xi16> to vector<1x1x8x2xi32>
    %s = vector.contract {indexing_maps = [#data, #weights, #sums], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"], kind = #vector.kind<add>} %a32, %b32, %acc : vector<2x1x2xi32>, vector<1x1x8x2xi32> into vector<2x1x8xi32>
    scf.yield %s : vector<2x1x8xi32>
  }
  vector.transfer_write %r, %y[%c0, %c0, %c0] {in_bounds = [true, true, true]} : vector<2x1x8xi32>, memref<2x1x8xi32>
  return
}
