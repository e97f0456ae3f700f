// RUN: %python %S/Inputs/x86_step.py %s > %t && filecheck %s --input-file=%t

// A table of 256 numbers of 32 bits is four tables of bytes for 64 indices at once: two permutes for each.

// CHECK-LABEL: func.func @look_up(
// CHECK-COUNT-16: vector.load %arg0[{{.*}}] : memref<256xf32>, vector<16xf32>
// CHECK-COUNT-8: "llvm.x86.avx512.vpermi2var.qi.512"
// CHECK-NOT: vpermi2var.d
// CHECK-NOT: vector.gather
func.func @look_up(%table: memref<256xf32>, %x: vector<64xi8>) -> vector<64xf32> {
  %c0 = arith.constant 0 : index
  %mask = arith.constant dense<true> : vector<64xi1>
  %none = arith.constant dense<0.0> : vector<64xf32>
  %at = arith.index_castui %x : vector<64xi8> to vector<64xindex>
  %0 = vector.gather %table[%c0] [%at], %mask, %none : memref<256xf32>, vector<64xindex>, vector<64xi1>, vector<64xf32> into vector<64xf32>
  return %0 : vector<64xf32>
}

// Indices of 32 bits are those of their low bytes.

// CHECK-LABEL: func.func @wide_indices(
// CHECK: arith.trunci %{{.*}} : vector<4x16xi32> to vector<4x16xi8>
// CHECK-COUNT-8: "llvm.x86.avx512.vpermi2var.qi.512"
// CHECK-NOT: vector.gather
func.func @wide_indices(%table: memref<256xi32>, %x: vector<4x16xi32>) -> vector<4x16xi32> {
  %c0 = arith.constant 0 : index
  %mask = arith.constant dense<true> : vector<4x16xi1>
  %none = arith.constant dense<0> : vector<4x16xi32>
  %at = arith.index_cast %x : vector<4x16xi32> to vector<4x16xindex>
  %0 = vector.gather %table[%c0] [%at], %mask, %none : memref<256xi32>, vector<4x16xindex>, vector<4x16xi1>, vector<4x16xi32> into vector<4x16xi32>
  return %0 : vector<4x16xi32>
}

// Fewer indices are looked up by permutes of numbers.

// CHECK-LABEL: func.func @few_lanes(
// CHECK: "llvm.x86.avx512.vpermi2var.d.512"
func.func @few_lanes(%table: memref<256xf32>, %x: vector<2x16xi32>) -> vector<2x16xf32> {
  %c0 = arith.constant 0 : index
  %mask = arith.constant dense<true> : vector<2x16xi1>
  %none = arith.constant dense<0.0> : vector<2x16xf32>
  %at = arith.index_cast %x : vector<2x16xi32> to vector<2x16xindex>
  %0 = vector.gather %table[%c0] [%at], %mask, %none : memref<256xf32>, vector<2x16xindex>, vector<2x16xi1>, vector<2x16xf32> into vector<2x16xf32>
  return %0 : vector<2x16xf32>
}

// CHECK-LABEL: func.func @short_rows(
// CHECK: vector.gather
func.func @short_rows(%table: memref<256xf32>, %x: vector<16x4xi8>) -> vector<16x4xf32> {
  %c0 = arith.constant 0 : index
  %mask = arith.constant dense<true> : vector<16x4xi1>
  %none = arith.constant dense<0.0> : vector<16x4xf32>
  %at = arith.index_castui %x : vector<16x4xi8> to vector<16x4xindex>
  // expected-remark @+2 {{[byte-plane-table] 'vector.gather' must look up a multiple of 64 entries in rows of a multiple of 16, but got 16x4}}
  // expected-remark @+1 {{[register-table] 'vector.gather' vectors must have rows of a multiple of 16 lanes, but got [16, 4]}}
  %0 = vector.gather %table[%c0] [%at], %mask, %none : memref<256xf32>, vector<16x4xindex>, vector<16x4xi1>, vector<16x4xf32> into vector<16x4xf32>
  return %0 : vector<16x4xf32>
}

// CHECK-LABEL: func.func @later_entries(
// CHECK: vector.gather
func.func @later_entries(%table: memref<256xf32>, %x: vector<64xi8>) -> vector<64xf32> {
  %c1 = arith.constant 1 : index
  %mask = arith.constant dense<true> : vector<64xi1>
  %none = arith.constant dense<0.0> : vector<64xf32>
  %at = arith.index_castui %x : vector<64xi8> to vector<64xindex>
  // expected-remark @+2 {{[byte-plane-table] 'vector.gather' base index must be 0, but got 1}}
  // expected-remark @+1 {{[register-table] 'vector.gather' base index must be 0, but got 1}}
  %0 = vector.gather %table[%c1] [%at], %mask, %none : memref<256xf32>, vector<64xindex>, vector<64xi1>, vector<64xf32> into vector<64xf32>
  return %0 : vector<64xf32>
}

// CHECK-LABEL: func.func @some_lanes(
// CHECK: vector.gather
func.func @some_lanes(%table: memref<256xf32>, %x: vector<64xi8>, %mask: vector<64xi1>) -> vector<64xf32> {
  %c0 = arith.constant 0 : index
  %none = arith.constant dense<0.0> : vector<64xf32>
  %at = arith.index_castui %x : vector<64xi8> to vector<64xindex>
  // expected-remark @+2 {{[byte-plane-table] 'vector.gather' mask must be true in every lane}}
  // expected-remark @+1 {{[register-table] 'vector.gather' mask must be true in every lane}}
  %0 = vector.gather %table[%c0] [%at], %mask, %none : memref<256xf32>, vector<64xindex>, vector<64xi1>, vector<64xf32> into vector<64xf32>
  return %0 : vector<64xf32>
}

// CHECK-LABEL: func.func @spread_entries(
// CHECK: vector.gather
func.func @spread_entries(%table: memref<256xf32, strided<[2]>>, %x: vector<64xi8>) -> vector<64xf32> {
  %c0 = arith.constant 0 : index
  %mask = arith.constant dense<true> : vector<64xi1>
  %none = arith.constant dense<0.0> : vector<64xf32>
  %at = arith.index_castui %x : vector<64xi8> to vector<64xindex>
  // expected-remark @+2 {{[byte-plane-table] 'vector.gather' table must lie side by side in the default memory space, but got memref<256xf32, strided<[2]>>}}
  // expected-remark @+1 {{[register-table] 'vector.gather' table must lie side by side in the default memory space, but got memref<256xf32, strided<[2]>>}}
  %0 = vector.gather %table[%c0] [%at], %mask, %none : memref<256xf32, strided<[2]>>, vector<64xindex>, vector<64xi1>, vector<64xf32> into vector<64xf32>
  return %0 : vector<64xf32>
}

// CHECK-LABEL: func.func @plain_indices(
// CHECK: vector.gather
func.func @plain_indices(%table: memref<256xf32>, %at: vector<64xindex>) -> vector<64xf32> {
  %c0 = arith.constant 0 : index
  %mask = arith.constant dense<true> : vector<64xi1>
  %none = arith.constant dense<0.0> : vector<64xf32>
  // expected-remark @+2 {{[byte-plane-table] 'vector.gather' indices must be cast from a vector of 8 or 32-bit integers}}
  // expected-remark @+1 {{[register-table] 'vector.gather' indices must be cast from a vector of 8 or 32-bit integers}}
  %0 = vector.gather %table[%c0] [%at], %mask, %none : memref<256xf32>, vector<64xindex>, vector<64xi1>, vector<64xf32> into vector<64xf32>
  return %0 : vector<64xf32>
}
