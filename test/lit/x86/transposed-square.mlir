// RUN: %python %S/Inputs/x86_step.py %s --target=avx512vbmi > %t && filecheck %s --input-file=%t

// 16 x 16 numbers of 32 bits: numbers and pairs are interleaved, then quarters of registers are collected: four instructions a vector.

// CHECK-LABEL: func.func @square(
// CHECK-NOT: vector.transpose
// CHECK: vector.shuffle {{.*}} [0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29] : vector<16xf32>, vector<16xf32>
// CHECK: vector.shuffle {{.*}} [2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31] : vector<16xf32>, vector<16xf32>
// CHECK: vector.shuffle {{.*}} [0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29] : vector<16xf32>, vector<16xf32>
// CHECK: vector.shuffle {{.*}} [2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31] : vector<16xf32>, vector<16xf32>
// CHECK: vector.shuffle {{.*}} [0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27] : vector<16xf32>, vector<16xf32>
// CHECK: vector.shuffle {{.*}} [4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31] : vector<16xf32>, vector<16xf32>
// CHECK: vector.transfer_write
func.func @square(%x: memref<16x16xf32>, %y: memref<16x16xf32>) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %a = vector.transfer_read %x[%c0, %c0], %zero {in_bounds = [true, true]} : memref<16x16xf32>, vector<16x16xf32>
  %b = vector.transpose %a, [1, 0] : vector<16x16xf32> to vector<16x16xf32>
  vector.transfer_write %b, %y[%c0, %c0] {in_bounds = [true, true]} : vector<16x16xf32>, memref<16x16xf32>
  return
}

// Dimensions of 1 next to the square change nothing.

// CHECK-LABEL: func.func @units(
// CHECK-NOT: vector.transpose
// CHECK: vector.shuffle {{.*}} : vector<16xi32>, vector<16xi32>
// CHECK: vector.transfer_write
func.func @units(%x: memref<16x1x16xi32>, %y: memref<1x16x16xi32>) {
  %zero = arith.constant 0 : i32
  %c0 = arith.constant 0 : index
  %a = vector.transfer_read %x[%c0, %c0, %c0], %zero {in_bounds = [true, true, true]} : memref<16x1x16xi32>, vector<16x1x16xi32>
  %b = vector.transpose %a, [1, 2, 0] : vector<16x1x16xi32> to vector<1x16x16xi32>
  vector.transfer_write %b, %y[%c0, %c0, %c0] {in_bounds = [true, true, true]} : vector<1x16x16xi32>, memref<1x16x16xi32>
  return
}

// Rows of fewer than four numbers are not worth it, planes are refused, and numbers of 16 bits are no candidates.

// CHECK-LABEL: func.func @others(
// CHECK: vector.transpose
// CHECK: vector.transpose
func.func @others(%x: memref<16x3xf32>, %y: memref<3x16xf32>, %v: memref<16x16xi16>, %w: memref<16x16xi16>) {
  %zero = arith.constant 0.0 : f32
  %none = arith.constant 0 : i16
  %c0 = arith.constant 0 : index
  %a = vector.transfer_read %x[%c0, %c0], %zero {in_bounds = [true, true]} : memref<16x3xf32>, vector<16x3xf32>
  // expected-remark @+1 {{[transposed-square] 'vector.transpose' a square must have 4 to 16 rows, but got 16 of 3}}
  %b = vector.transpose %a, [1, 0] : vector<16x3xf32> to vector<3x16xf32>
  vector.transfer_write %b, %y[%c0, %c0] {in_bounds = [true, true]} : vector<3x16xf32>, memref<3x16xf32>
  %c = vector.transfer_read %v[%c0, %c0], %none {in_bounds = [true, true]} : memref<16x16xi16>, vector<16x16xi16>
  %d = vector.transpose %c, [1, 0] : vector<16x16xi16> to vector<16x16xi16>
  vector.transfer_write %d, %w[%c0, %c0] {in_bounds = [true, true]} : vector<16x16xi16>, memref<16x16xi16>
  return
}

// CHECK-LABEL: func.func @planes(
// CHECK: vector.transpose
func.func @planes(%x: vector<2x16x16xf32>) -> vector<2x16x16xf32> {
  // expected-remark @+1 {{[transposed-square] 'vector.transpose' all dimensions but two must be 1, but got [2, 16, 16]}}
  %a = vector.transpose %x, [0, 2, 1] : vector<2x16x16xf32> to vector<2x16x16xf32>
  return %a : vector<2x16x16xf32>
}
