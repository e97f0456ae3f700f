// RUN: %python %S/Inputs/x86_step.py %s > %t && filecheck %s --input-file=%t

// A table of 16 floats is looked up in a register, by the low four bits of each lane.

// CHECK-LABEL: func.func @look_up(
// CHECK: vector.load %arg0[{{.*}}] : memref<16xf32>, vector<16xf32>
// CHECK: "llvm.x86.avx512.permvar.si.512"
// CHECK-NOT: vector.gather
func.func @look_up(%table: memref<16xf32>, %x: vector<16xi32>) -> vector<16xf32> {
  %c0 = arith.constant 0 : index
  %wrap = arith.constant dense<15> : vector<16xi32>
  %mask = arith.constant dense<true> : vector<16xi1>
  %none = arith.constant dense<0.0> : vector<16xf32>
  %low = arith.andi %x, %wrap : vector<16xi32>
  %at = arith.index_cast %low : vector<16xi32> to vector<16xindex>
  %0 = vector.gather %table[%c0] [%at], %mask, %none : memref<16xf32>, vector<16xindex>, vector<16xi1>, vector<16xf32> into vector<16xf32>
  return %0 : vector<16xf32>
}

// CHECK-LABEL: func.func @rows(
// CHECK-COUNT-4: "llvm.x86.avx512.permvar.si.512"
// CHECK-NOT: vector.gather
func.func @rows(%table: memref<16xf32>, %x: vector<2x32xi32>) -> vector<2x32xf32> {
  %c0 = arith.constant 0 : index
  %wrap = arith.constant dense<15> : vector<2x32xi32>
  %mask = arith.constant dense<true> : vector<2x32xi1>
  %none = arith.constant dense<0.0> : vector<2x32xf32>
  %low = arith.andi %x, %wrap : vector<2x32xi32>
  %at = arith.index_cast %low : vector<2x32xi32> to vector<2x32xindex>
  %0 = vector.gather %table[%c0] [%at], %mask, %none : memref<16xf32>, vector<2x32xindex>, vector<2x32xi1>, vector<2x32xf32> into vector<2x32xf32>
  return %0 : vector<2x32xf32>
}

// What does not say that all of an index is its low four bits is read entry by entry.

// CHECK-LABEL: func.func @any_index(
// CHECK-NOT: permvar
// CHECK: vector.gather
func.func @any_index(%table: memref<16xf32>, %x: vector<16xi32>) -> vector<16xf32> {
  %c0 = arith.constant 0 : index
  %mask = arith.constant dense<true> : vector<16xi1>
  %none = arith.constant dense<0.0> : vector<16xf32>
  %at = arith.index_cast %x : vector<16xi32> to vector<16xindex>
  // expected-remark @+1 {{[register-table] 'vector.gather' indices must be cast from a vector of 32-bit integers modulo 16}}
  %0 = vector.gather %table[%c0] [%at], %mask, %none : memref<16xf32>, vector<16xindex>, vector<16xi1>, vector<16xf32> into vector<16xf32>
  return %0 : vector<16xf32>
}

// CHECK-LABEL: func.func @few_lanes(
// CHECK-NOT: permvar
// CHECK: vector.gather
func.func @few_lanes(%table: memref<16xf32>, %x: vector<8xi32>) -> vector<8xf32> {
  %c0 = arith.constant 0 : index
  %wrap = arith.constant dense<15> : vector<8xi32>
  %mask = arith.constant dense<true> : vector<8xi1>
  %none = arith.constant dense<0.0> : vector<8xf32>
  %low = arith.andi %x, %wrap : vector<8xi32>
  %at = arith.index_cast %low : vector<8xi32> to vector<8xindex>
  // expected-remark @+1 {{[register-table] 'vector.gather' vectors must have a multiple of 16 lanes, but got 8}}
  %0 = vector.gather %table[%c0] [%at], %mask, %none : memref<16xf32>, vector<8xindex>, vector<8xi1>, vector<8xf32> into vector<8xf32>
  return %0 : vector<8xf32>
}

// CHECK-LABEL: func.func @longer_table(
// CHECK-NOT: permvar
// CHECK: vector.gather
func.func @longer_table(%table: memref<32xf32>, %x: vector<16xi32>) -> vector<16xf32> {
  %c0 = arith.constant 0 : index
  %wrap = arith.constant dense<15> : vector<16xi32>
  %mask = arith.constant dense<true> : vector<16xi1>
  %none = arith.constant dense<0.0> : vector<16xf32>
  %low = arith.andi %x, %wrap : vector<16xi32>
  %at = arith.index_cast %low : vector<16xi32> to vector<16xindex>
  %0 = vector.gather %table[%c0] [%at], %mask, %none : memref<32xf32>, vector<16xindex>, vector<16xi1>, vector<16xf32> into vector<16xf32>
  return %0 : vector<16xf32>
}
