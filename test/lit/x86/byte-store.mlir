// RUN: %python %S/Inputs/x86_step.py %s > %t && filecheck %s --input-file=%t

// A write of narrowed integers is two saturating packs for 64 bytes, where the integers are proven to be bytes.

// CHECK-LABEL: func.func @flagged(
// CHECK-COUNT-2: "llvm.x86.avx512.packuswb.512"
// CHECK-NOT: vector.transfer_write
func.func @flagged(%x: vector<2x4x16xi32>, %y: memref<2x4x16xi8>) {
  %c0 = arith.constant 0 : index
  %n = arith.trunci %x overflow<nuw> : vector<2x4x16xi32> to vector<2x4x16xi8>
  vector.transfer_write %n, %y[%c0, %c0, %c0] {in_bounds = [true, true, true]} : vector<2x4x16xi8>, memref<2x4x16xi8>
  return
}

// CHECK-LABEL: func.func @clamped(
// CHECK-NOT: arith.minsi
// CHECK-COUNT-2: "llvm.x86.avx512.packuswb.512"
// CHECK-NOT: vector.transfer_write
func.func @clamped(%x: vector<2x4x16xi32>, %y: memref<2x4x16xi8>) {
  %c0 = arith.constant 0 : index
  %lo = arith.constant dense<0> : vector<2x4x16xi32>
  %hi = arith.constant dense<255> : vector<2x4x16xi32>
  %m = arith.maxsi %x, %lo : vector<2x4x16xi32>
  %k = arith.minsi %m, %hi : vector<2x4x16xi32>
  %n = arith.trunci %k : vector<2x4x16xi32> to vector<2x4x16xi8>
  vector.transfer_write %n, %y[%c0, %c0, %c0] {in_bounds = [true, true, true]} : vector<2x4x16xi8>, memref<2x4x16xi8>
  return
}

// CHECK-LABEL: func.func @clamped_to_less(
// CHECK: arith.minsi
// CHECK-COUNT-2: "llvm.x86.avx512.packuswb.512"
// CHECK-NOT: vector.transfer_write
func.func @clamped_to_less(%x: vector<2x4x16xi32>, %y: memref<2x4x16xi8>) {
  %c0 = arith.constant 0 : index
  %lo = arith.constant dense<3> : vector<2x4x16xi32>
  %hi = arith.constant dense<200> : vector<2x4x16xi32>
  %m = arith.maxsi %x, %lo : vector<2x4x16xi32>
  %k = arith.minsi %m, %hi : vector<2x4x16xi32>
  %n = arith.trunci %k : vector<2x4x16xi32> to vector<2x4x16xi8>
  vector.transfer_write %n, %y[%c0, %c0, %c0] {in_bounds = [true, true, true]} : vector<2x4x16xi8>, memref<2x4x16xi8>
  return
}

// CHECK-LABEL: func.func @bits(
// CHECK-COUNT-2: "llvm.x86.avx512.packuswb.512"
// CHECK-NOT: vector.transfer_write
func.func @bits(%x: vector<2x4x16xi32>, %y: memref<2x4x16xi8>) {
  %c0 = arith.constant 0 : index
  %bits = arith.constant dense<255> : vector<2x4x16xi32>
  %k = arith.andi %x, %bits : vector<2x4x16xi32>
  %n = arith.trunci %k : vector<2x4x16xi32> to vector<2x4x16xi8>
  vector.transfer_write %n, %y[%c0, %c0, %c0] {in_bounds = [true, true, true]} : vector<2x4x16xi8>, memref<2x4x16xi8>
  return
}

// CHECK-LABEL: func.func @limited(
// CHECK: packuswb
// CHECK: arith.minui %{{.*}} : vector<64xi8>
// CHECK-NOT: vector.transfer_write
func.func @limited(%x: vector<2x4x16xi32>, %y: memref<2x4x16xi8>, %b: i8) {
  %c0 = arith.constant 0 : index
  %n = arith.trunci %x overflow<nuw> : vector<2x4x16xi32> to vector<2x4x16xi8>
  %s = vector.broadcast %b : i8 to vector<2x4x16xi8>
  %l = arith.minui %n, %s : vector<2x4x16xi8>
  vector.transfer_write %l, %y[%c0, %c0, %c0] {in_bounds = [true, true, true]} : vector<2x4x16xi8>, memref<2x4x16xi8>
  return
}

// CHECK-LABEL: func.func @any_range(
// CHECK-NOT: packuswb
// CHECK: vector.transfer_write
func.func @any_range(%x: vector<2x4x16xi32>, %y: memref<2x4x16xi8>) {
  %c0 = arith.constant 0 : index
  %n = arith.trunci %x : vector<2x4x16xi32> to vector<2x4x16xi8>
  // expected-remark @below {{[byte-store] 'vector.transfer_write' integers must be proven to be in 0..255, but are in -2147483648..2147483647}}
  vector.transfer_write %n, %y[%c0, %c0, %c0] {in_bounds = [true, true, true]} : vector<2x4x16xi8>, memref<2x4x16xi8>
  return
}

// CHECK-LABEL: func.func @one_too_many(
// CHECK-NOT: packuswb
// CHECK: vector.transfer_write
func.func @one_too_many(%x: vector<2x4x16xi32>, %y: memref<2x4x16xi8>) {
  %c0 = arith.constant 0 : index
  %lo = arith.constant dense<0> : vector<2x4x16xi32>
  %hi = arith.constant dense<256> : vector<2x4x16xi32>
  %m = arith.maxsi %x, %lo : vector<2x4x16xi32>
  %k = arith.minsi %m, %hi : vector<2x4x16xi32>
  %n = arith.trunci %k : vector<2x4x16xi32> to vector<2x4x16xi8>
  // expected-remark @below {{[byte-store] 'vector.transfer_write' integers must be proven to be in 0..255, but are in 0..256}}
  vector.transfer_write %n, %y[%c0, %c0, %c0] {in_bounds = [true, true, true]} : vector<2x4x16xi8>, memref<2x4x16xi8>
  return
}

// CHECK-LABEL: func.func @signed_flag(
// CHECK-NOT: packuswb
// CHECK: vector.transfer_write
func.func @signed_flag(%x: vector<2x4x16xi32>, %y: memref<2x4x16xi8>) {
  %c0 = arith.constant 0 : index
  %n = arith.trunci %x overflow<nsw> : vector<2x4x16xi32> to vector<2x4x16xi8>
  // expected-remark @below {{[byte-store] 'vector.transfer_write' integers must be proven to be in 0..255}}
  vector.transfer_write %n, %y[%c0, %c0, %c0] {in_bounds = [true, true, true]} : vector<2x4x16xi8>, memref<2x4x16xi8>
  return
}

// CHECK-LABEL: func.func @wider_rows(
// CHECK-NOT: packuswb
// CHECK: vector.transfer_write
func.func @wider_rows(%x: vector<2x4x16xi32>, %y: memref<2x5x16xi8>) {
  %c0 = arith.constant 0 : index
  %n = arith.trunci %x overflow<nuw> : vector<2x4x16xi32> to vector<2x4x16xi8>
  // expected-remark @below {{[byte-store] 'vector.transfer_write' destination must have rows of whole vectors of 16, but got [2, 4, 16] for memref<2x5x16xi8>}}
  vector.transfer_write %n, %y[%c0, %c0, %c0] {in_bounds = [true, true, true]} : vector<2x4x16xi8>, memref<2x5x16xi8>
  return
}

// CHECK-LABEL: func.func @rows_apart(
// CHECK-NOT: packuswb
// CHECK: vector.transfer_write
func.func @rows_apart(%x: vector<2x4x16xi32>, %y: memref<2x4x16xi8, strided<[128, 32, 1]>>) {
  %c0 = arith.constant 0 : index
  %n = arith.trunci %x overflow<nuw> : vector<2x4x16xi32> to vector<2x4x16xi8>
  // expected-remark @below {{[byte-store] 'vector.transfer_write' destination must have rows that lie side by side}}
  vector.transfer_write %n, %y[%c0, %c0, %c0] {in_bounds = [true, true, true]} : vector<2x4x16xi8>, memref<2x4x16xi8, strided<[128, 32, 1]>>
  return
}

// CHECK-LABEL: func.func @one_vector(
// CHECK-NOT: packuswb
// CHECK: vector.transfer_write
func.func @one_vector(%x: vector<1x16xi32>, %y: memref<1x16xi8>) {
  %c0 = arith.constant 0 : index
  %n = arith.trunci %x overflow<nuw> : vector<1x16xi32> to vector<1x16xi8>
  // expected-remark @below {{[byte-store] 'vector.transfer_write' destination must get more than one vector}}
  vector.transfer_write %n, %y[%c0, %c0] {in_bounds = [true, true]} : vector<1x16xi8>, memref<1x16xi8>
  return
}

// CHECK-LABEL: func.func @out_of_bounds(
// CHECK-NOT: packuswb
// CHECK: vector.transfer_write
func.func @out_of_bounds(%x: vector<2x4x16xi32>, %y: memref<1x4x16xi8>) {
  %c0 = arith.constant 0 : index
  %n = arith.trunci %x overflow<nuw> : vector<2x4x16xi32> to vector<2x4x16xi8>
  // expected-remark @below {{[byte-store] 'vector.transfer_write' destination must be accessed in bounds}}
  vector.transfer_write %n, %y[%c0, %c0, %c0] {in_bounds = [false, true, true]} : vector<2x4x16xi8>, memref<1x4x16xi8>
  return
}

// CHECK-LABEL: func.func @turned(
// CHECK-NOT: packuswb
// CHECK: vector.transfer_write
func.func @turned(%x: vector<4x4x16xi32>, %y: memref<4x4x16xi8>) {
  %c0 = arith.constant 0 : index
  %n = arith.trunci %x overflow<nuw> : vector<4x4x16xi32> to vector<4x4x16xi8>
  // expected-remark @below {{[byte-store] 'vector.transfer_write' destination must be accessed in the order of memory}}
  vector.transfer_write %n, %y[%c0, %c0, %c0] {in_bounds = [true, true, true], permutation_map = affine_map<(d0, d1, d2) -> (d1, d0, d2)>} : vector<4x4x16xi8>, memref<4x4x16xi8>
  return
}

// CHECK-LABEL: func.func @masked(
// CHECK-NOT: packuswb
// CHECK: vector.transfer_write
func.func @masked(%x: vector<4x16xi32>, %y: memref<4x16xi8>, %m: vector<4x16xi1>) {
  %c0 = arith.constant 0 : index
  %n = arith.trunci %x overflow<nuw> : vector<4x16xi32> to vector<4x16xi8>
  // expected-remark @below {{[byte-store] 'vector.transfer_write' destination must be accessed without a mask}}
  vector.transfer_write %n, %y[%c0, %c0], %m {in_bounds = [true, true]} : vector<4x16xi8>, memref<4x16xi8>
  return
}

// CHECK-LABEL: func.func @in_a_mask(
// CHECK-NOT: packuswb
// CHECK: vector.transfer_write
func.func @in_a_mask(%x: vector<4x16xi32>, %y: memref<4x16xi8>, %m: vector<4x16xi1>) {
  %c0 = arith.constant 0 : index
  %n = arith.trunci %x overflow<nuw> : vector<4x16xi32> to vector<4x16xi8>
  vector.mask %m {
    // expected-remark @below {{[byte-store] 'vector.transfer_write' must not be masked}}
    vector.transfer_write %n, %y[%c0, %c0] {in_bounds = [true, true]} : vector<4x16xi8>, memref<4x16xi8>
  } : vector<4x16xi1>
  return
}

// CHECK-LABEL: func.func @table(
// CHECK: packuswb
// CHECK-COUNT-2: "llvm.x86.avx512.vpermi2var.qi.512"
// CHECK-NOT: vector.transfer_write
func.func @table(%x: vector<4x16xi32>, %t: memref<256xi8>, %y: memref<4x16xi8>) {
  %c0 = arith.constant 0 : index
  %mask = arith.constant dense<true> : vector<4x16xi1>
  %rest = arith.constant dense<0> : vector<4x16xi8>
  %i = arith.index_cast %x : vector<4x16xi32> to vector<4x16xindex>
  %g = vector.gather %t[%c0] [%i], %mask, %rest
    : memref<256xi8>, vector<4x16xindex>, vector<4x16xi1>, vector<4x16xi8> into vector<4x16xi8>
  vector.transfer_write %g, %y[%c0, %c0] {in_bounds = [true, true]} : vector<4x16xi8>, memref<4x16xi8>
  return
}

// A table that changes between its read and the write is read first.
// CHECK-LABEL: func.func @table_written(
// CHECK-NOT: packuswb
// CHECK: "llvm.x86.avx512.vpermi2var.qi.512"
// CHECK: memref.store
// CHECK: vector.transfer_write
func.func @table_written(%x: vector<4x16xi32>, %t: memref<256xi8>, %y: memref<4x16xi8>) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0 : i8
  %mask = arith.constant dense<true> : vector<4x16xi1>
  %rest = arith.constant dense<0> : vector<4x16xi8>
  %i = arith.index_cast %x : vector<4x16xi32> to vector<4x16xindex>
  %g = vector.gather %t[%c0] [%i], %mask, %rest
    : memref<256xi8>, vector<4x16xindex>, vector<4x16xi1>, vector<4x16xi8> into vector<4x16xi8>
  memref.store %zero, %t[%c0] : memref<256xi8>
  vector.transfer_write %g, %y[%c0, %c0] {in_bounds = [true, true]} : vector<4x16xi8>, memref<4x16xi8>
  return
}
