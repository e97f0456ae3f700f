// RUN: %python %S/Inputs/x86_step.py %s > %t && filecheck %s --input-file=%t

// A gather from a table of 256 bytes is two byte permutes for 64 entries and a choice between them.

// CHECK-LABEL: func.func @whole_vector(
// CHECK-COUNT-2: "llvm.x86.avx512.vpermi2var.qi.512"
// CHECK-NOT: vector.gather
func.func @whole_vector(%t: memref<256xi8>, %x: vector<64xi8>) -> vector<64xi8> {
  %base = arith.constant 0 : index
  %mask = arith.constant dense<true> : vector<64xi1>
  %rest = arith.constant dense<7> : vector<64xi8>
  %i = arith.index_castui %x : vector<64xi8> to vector<64xindex>
  %0 = vector.gather %t[%base] [%i], %mask, %rest
    : memref<256xi8>, vector<64xindex>, vector<64xi1>, vector<64xi8> into vector<64xi8>
  return %0 : vector<64xi8>
}

// CHECK-LABEL: func.func @tail(
// CHECK: vector.shuffle
// CHECK-COUNT-2: "llvm.x86.avx512.vpermi2var.qi.512"
// CHECK-NOT: vector.gather
func.func @tail(%t: memref<256xi8>, %x: vector<5xi8>) -> vector<5xi8> {
  %base = arith.constant 0 : index
  %mask = arith.constant dense<true> : vector<5xi1>
  %rest = arith.constant dense<7> : vector<5xi8>
  %i = arith.index_castui %x : vector<5xi8> to vector<5xindex>
  %0 = vector.gather %t[%base] [%i], %mask, %rest
    : memref<256xi8>, vector<5xindex>, vector<5xi1>, vector<5xi8> into vector<5xi8>
  return %0 : vector<5xi8>
}

// CHECK-LABEL: func.func @wide_indices(
// CHECK: arith.trunci
// CHECK-COUNT-4: "llvm.x86.avx512.vpermi2var.qi.512"
// CHECK-NOT: vector.gather
func.func @wide_indices(%t: memref<256xi8>, %x: vector<2x16xi32>) -> vector<2x16xi8> {
  %base = arith.constant 0 : index
  %mask = arith.constant dense<true> : vector<2x16xi1>
  %rest = arith.constant dense<7> : vector<2x16xi8>
  %i = arith.index_cast %x : vector<2x16xi32> to vector<2x16xindex>
  %0 = vector.gather %t[%base] [%i], %mask, %rest
    : memref<256xi8>, vector<2x16xindex>, vector<2x16xi1>, vector<2x16xi8> into vector<2x16xi8>
  return %0 : vector<2x16xi8>
}

// CHECK-LABEL: func.func @base(
// CHECK-NOT: vpermi2var
// CHECK: vector.gather
func.func @base(%t: memref<256xi8>, %x: vector<64xi8>) -> vector<64xi8> {
  %base = arith.constant 1 : index
  %mask = arith.constant dense<true> : vector<64xi1>
  %rest = arith.constant dense<7> : vector<64xi8>
  %i = arith.index_castui %x : vector<64xi8> to vector<64xindex>
  // expected-remark @below {{[byte-table] 'vector.gather' base index must be 0, but got 1}}
  %0 = vector.gather %t[%base] [%i], %mask, %rest
    : memref<256xi8>, vector<64xindex>, vector<64xi1>, vector<64xi8> into vector<64xi8>
  return %0 : vector<64xi8>
}

// CHECK-LABEL: func.func @variable_base(
// CHECK-NOT: vpermi2var
// CHECK: vector.gather
func.func @variable_base(%t: memref<256xi8>, %x: vector<64xi8>, %base: index) -> vector<64xi8> {
  %mask = arith.constant dense<true> : vector<64xi1>
  %rest = arith.constant dense<7> : vector<64xi8>
  %i = arith.index_castui %x : vector<64xi8> to vector<64xindex>
  // expected-remark @below {{[byte-table] 'vector.gather' base index must be 0, but got a variable}}
  %0 = vector.gather %t[%base] [%i], %mask, %rest
    : memref<256xi8>, vector<64xindex>, vector<64xi1>, vector<64xi8> into vector<64xi8>
  return %0 : vector<64xi8>
}

// CHECK-LABEL: func.func @no_lane(
// CHECK-NOT: vpermi2var
// CHECK: vector.gather
func.func @no_lane(%t: memref<256xi8>, %x: vector<64xi8>) -> vector<64xi8> {
  %base = arith.constant 0 : index
  %mask = arith.constant dense<false> : vector<64xi1>
  %rest = arith.constant dense<7> : vector<64xi8>
  %i = arith.index_castui %x : vector<64xi8> to vector<64xindex>
  // expected-remark @below {{[byte-table] 'vector.gather' mask must be true in every lane}}
  %0 = vector.gather %t[%base] [%i], %mask, %rest
    : memref<256xi8>, vector<64xindex>, vector<64xi1>, vector<64xi8> into vector<64xi8>
  return %0 : vector<64xi8>
}

// CHECK-LABEL: func.func @first_lanes(
// CHECK-NOT: vpermi2var
// CHECK: vector.gather
func.func @first_lanes(%t: memref<256xi8>, %x: vector<64xi8>) -> vector<64xi8> {
  %base = arith.constant 0 : index
  %mask = vector.constant_mask [63] : vector<64xi1>
  %rest = arith.constant dense<7> : vector<64xi8>
  %i = arith.index_castui %x : vector<64xi8> to vector<64xindex>
  // expected-remark @below {{[byte-table] 'vector.gather' mask must be true in every lane}}
  %0 = vector.gather %t[%base] [%i], %mask, %rest
    : memref<256xi8>, vector<64xindex>, vector<64xi1>, vector<64xi8> into vector<64xi8>
  return %0 : vector<64xi8>
}

// CHECK-LABEL: func.func @all_lanes(
// CHECK: vpermi2var
func.func @all_lanes(%t: memref<256xi8>, %x: vector<64xi8>) -> vector<64xi8> {
  %base = arith.constant 0 : index
  %mask = vector.constant_mask [64] : vector<64xi1>
  %rest = arith.constant dense<7> : vector<64xi8>
  %i = arith.index_castui %x : vector<64xi8> to vector<64xindex>
  %0 = vector.gather %t[%base] [%i], %mask, %rest
    : memref<256xi8>, vector<64xindex>, vector<64xi1>, vector<64xi8> into vector<64xi8>
  return %0 : vector<64xi8>
}

// CHECK-LABEL: func.func @narrow_indices(
// CHECK-NOT: vpermi2var
// CHECK: vector.gather
func.func @narrow_indices(%t: memref<256xi8>, %x: vector<64xi4>) -> vector<64xi8> {
  %base = arith.constant 0 : index
  %mask = arith.constant dense<true> : vector<64xi1>
  %rest = arith.constant dense<7> : vector<64xi8>
  %i = arith.index_castui %x : vector<64xi4> to vector<64xindex>
  // expected-remark @below {{[byte-table] 'vector.gather' indices must be cast from a vector of integers of at least 8 bits}}
  %0 = vector.gather %t[%base] [%i], %mask, %rest
    : memref<256xi8>, vector<64xindex>, vector<64xi1>, vector<64xi8> into vector<64xi8>
  return %0 : vector<64xi8>
}

// CHECK-LABEL: func.func @strided(
// CHECK-NOT: vpermi2var
// CHECK: vector.gather
func.func @strided(%t: memref<256xi8, strided<[2]>>, %x: vector<64xi8>) -> vector<64xi8> {
  %base = arith.constant 0 : index
  %mask = arith.constant dense<true> : vector<64xi1>
  %rest = arith.constant dense<7> : vector<64xi8>
  %i = arith.index_castui %x : vector<64xi8> to vector<64xindex>
  // expected-remark @below {{[byte-table] 'vector.gather' table must lie side by side in the default memory space}}
  %0 = vector.gather %t[%base] [%i], %mask, %rest
    : memref<256xi8, strided<[2]>>, vector<64xindex>, vector<64xi1>, vector<64xi8> into vector<64xi8>
  return %0 : vector<64xi8>
}

// CHECK-LABEL: func.func @another_size(
// CHECK-NOT: vpermi2var
// CHECK: vector.gather
func.func @another_size(%t: memref<300xi8>, %x: vector<64xi8>) -> vector<64xi8> {
  %base = arith.constant 0 : index
  %mask = arith.constant dense<true> : vector<64xi1>
  %rest = arith.constant dense<7> : vector<64xi8>
  %i = arith.index_castui %x : vector<64xi8> to vector<64xindex>
  %0 = vector.gather %t[%base] [%i], %mask, %rest
    : memref<300xi8>, vector<64xindex>, vector<64xi1>, vector<64xi8> into vector<64xi8>
  return %0 : vector<64xi8>
}
