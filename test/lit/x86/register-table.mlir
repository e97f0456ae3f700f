// RUN: %python %S/Inputs/x86_step.py %s > %t && filecheck %s --input-file=%t

// What one or two registers hold is looked up there; of 16 floats the low four bits of each lane are the index.

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

// An index beyond the table is undefined behaviour.

// CHECK-LABEL: func.func @any_index(
// CHECK: "llvm.x86.avx512.permvar.si.512"
// CHECK-NOT: vector.gather
func.func @any_index(%table: memref<16xf32>, %x: vector<16xi32>) -> vector<16xf32> {
  %c0 = arith.constant 0 : index
  %mask = arith.constant dense<true> : vector<16xi1>
  %none = arith.constant dense<0.0> : vector<16xf32>
  %at = arith.index_cast %x : vector<16xi32> to vector<16xindex>
  %0 = vector.gather %table[%c0] [%at], %mask, %none : memref<16xf32>, vector<16xindex>, vector<16xi1>, vector<16xf32> into vector<16xf32>
  return %0 : vector<16xf32>
}

// CHECK-LABEL: func.func @few_lanes(
// CHECK: "llvm.x86.avx512.permvar.si.512"
// CHECK-NOT: vector.gather
func.func @few_lanes(%table: memref<16xf32>, %x: vector<8xi32>) -> vector<8xf32> {
  %c0 = arith.constant 0 : index
  %wrap = arith.constant dense<15> : vector<8xi32>
  %mask = arith.constant dense<true> : vector<8xi1>
  %none = arith.constant dense<0.0> : vector<8xf32>
  %low = arith.andi %x, %wrap : vector<8xi32>
  %at = arith.index_cast %low : vector<8xi32> to vector<8xindex>
  %0 = vector.gather %table[%c0] [%at], %mask, %none : memref<16xf32>, vector<8xindex>, vector<8xi1>, vector<8xf32> into vector<8xf32>
  return %0 : vector<8xf32>
}

// Of a longer table more bits are read, so that integers must be less than what an index is modulo.

// CHECK-LABEL: func.func @longer_table(
// CHECK: %[[LOW:.*]] = arith.andi
// CHECK: "llvm.x86.avx512.vpermi2var.d.512"(%{{.*}}, %[[LOW]], %{{.*}})
// CHECK-NOT: vector.gather
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

// CHECK-LABEL: func.func @bytes(
// CHECK: vector.load %arg0[{{.*}}] : memref<70xi8>, vector<64xi8>
// CHECK: vector.load %arg0[{{.*}}] : memref<70xi8>, vector<6xi8>
// CHECK: "llvm.x86.avx512.vpermi2var.qi.512"
// CHECK-NOT: vector.gather
func.func @bytes(%table: memref<70xi8>, %x: vector<1x60xi8>) -> vector<1x60xi8> {
  %c0 = arith.constant 0 : index
  %mask = arith.constant dense<true> : vector<1x60xi1>
  %none = arith.constant dense<0> : vector<1x60xi8>
  %at = arith.index_castui %x : vector<1x60xi8> to vector<1x60xindex>
  %0 = vector.gather %table[%c0] [%at], %mask, %none : memref<70xi8>, vector<1x60xindex>, vector<1x60xi1>, vector<1x60xi8> into vector<1x60xi8>
  return %0 : vector<1x60xi8>
}

// CHECK-LABEL: func.func @odd_lanes(
// CHECK-NOT: permvar
// CHECK: vector.gather
func.func @odd_lanes(%table: memref<16xf32>, %x: vector<17xi32>) -> vector<17xf32> {
  %c0 = arith.constant 0 : index
  %mask = arith.constant dense<true> : vector<17xi1>
  %none = arith.constant dense<0.0> : vector<17xf32>
  %at = arith.index_cast %x : vector<17xi32> to vector<17xindex>
  // expected-remark @+1 {{[register-table] 'vector.gather' vectors must have at most 16 lanes or rows of a multiple of them, but got [17]}}
  %0 = vector.gather %table[%c0] [%at], %mask, %none : memref<16xf32>, vector<17xindex>, vector<17xi1>, vector<17xf32> into vector<17xf32>
  return %0 : vector<17xf32>
}
