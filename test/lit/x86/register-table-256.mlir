// RUN: %python %S/Inputs/x86_step.py %s --target=avx2 > %t && filecheck %s --input-file=%t

// Two registers of eight lanes hold a table of 16 floats: the fourth bit of an index says which one has its entry.

// CHECK-LABEL: func.func @look_up(
// CHECK-DAG: vector.load %arg0[%c0{{.*}}] : memref<16xf32>, vector<8xf32>
// CHECK-DAG: vector.load %arg0[%c8{{.*}}] : memref<16xf32>, vector<8xf32>
// CHECK-COUNT-2: "llvm.x86.avx2.permd"
// CHECK: arith.select
// CHECK-COUNT-2: "llvm.x86.avx2.permd"
// CHECK: arith.select
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

// Four registers hold 32 floats, which the fourth and the fifth bit choose among.

// CHECK-LABEL: func.func @longer_table(
// CHECK-COUNT-4: "llvm.x86.avx2.permd"
// CHECK-COUNT-3: arith.select
// CHECK-NOT: vector.gather
func.func @longer_table(%table: memref<32xf32>, %x: vector<8xi32>) -> vector<8xf32> {
  %c0 = arith.constant 0 : index
  %wrap = arith.constant dense<31> : vector<8xi32>
  %mask = arith.constant dense<true> : vector<8xi1>
  %none = arith.constant dense<0.0> : vector<8xf32>
  %low = arith.andi %x, %wrap : vector<8xi32>
  %at = arith.index_cast %low : vector<8xi32> to vector<8xindex>
  %0 = vector.gather %table[%c0] [%at], %mask, %none : memref<32xf32>, vector<8xindex>, vector<8xi1>, vector<8xf32> into vector<8xf32>
  return %0 : vector<8xf32>
}
