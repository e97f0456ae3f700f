// RUN: %python %S/Inputs/x86_step.py %s > %t && filecheck %s --input-file=%t

// Planes of bytes become pixels by a permute for each plane after the first.

// CHECK-LABEL: func.func @three_planes(
// CHECK-COUNT-2: vector.shuffle {{.*}} : vector<64xi8>, vector<64xi8>
// CHECK: vector.store {{.*}} vector<64xi8>
// CHECK-COUNT-2: vector.shuffle {{.*}} : vector<64xi8>, vector<64xi8>
// CHECK: vector.store {{.*}} vector<64xi8>
// CHECK-COUNT-2: vector.shuffle {{.*}} : vector<64xi8>, vector<64xi8>
// CHECK: vector.store {{.*}} vector<64xi8>
// CHECK-NOT: vector.transpose
func.func @three_planes(%v: vector<3x64xi8>, %m: memref<500x3xi8>, %i: index) {
  %c0 = arith.constant 0 : index
  %t = vector.transpose %v, [1, 0] : vector<3x64xi8> to vector<64x3xi8>
  vector.transfer_write %t, %m[%i, %c0] {in_bounds = [true, true]} : vector<64x3xi8>, memref<500x3xi8>
  return
}

// What is no whole vector is the first bytes of one.

// CHECK-LABEL: func.func @two_planes(
// CHECK: vector.shuffle {{.*}} [0, 64, 1, 65,
// CHECK: vector.store {{.*}} vector<10xi8>
// CHECK-NOT: vector.store
func.func @two_planes(%v: vector<1x2x5xi8>, %m: memref<4x5x2xi8, strided<[20, 2, 1]>>, %i: index) {
  %c0 = arith.constant 0 : index
  %t = vector.transpose %v, [0, 2, 1] : vector<1x2x5xi8> to vector<1x5x2xi8>
  vector.transfer_write %t, %m[%i, %c0, %c0] {in_bounds = [true, true, true]} : vector<1x5x2xi8>, memref<4x5x2xi8, strided<[20, 2, 1]>>
  return
}

// Five planes are a square that is unpacked.

// CHECK-LABEL: func.func @five_planes(
// CHECK: vector.shuffle
// CHECK: vector.transfer_write
// CHECK-NOT: vector.transpose
func.func @five_planes(%v: vector<5x16xi8>, %m: memref<16x5xi8>) {
  %c0 = arith.constant 0 : index
  %t = vector.transpose %v, [1, 0] : vector<5x16xi8> to vector<16x5xi8>
  vector.transfer_write %t, %m[%c0, %c0] {in_bounds = [true, true]} : vector<16x5xi8>, memref<16x5xi8>
  return
}

// CHECK-LABEL: func.func @spare_lanes(
// CHECK: vector.transpose
func.func @spare_lanes(%v: vector<3x16xi8>, %m: memref<16x3xi8, strided<[4, 1]>>) {
  %c0 = arith.constant 0 : index
  // expected-remark @below {{[transposed-square] 'vector.transpose' bytes must be from 5 by 5 to 16 by 64, but got 3 rows of 16}}
  %t = vector.transpose %v, [1, 0] : vector<3x16xi8> to vector<16x3xi8>
  // expected-remark @below {{[pixel-write] 'vector.transfer_write' pixels must be contiguous, but got strides [4, 1]}}
  vector.transfer_write %t, %m[%c0, %c0] {in_bounds = [true, true]} : vector<16x3xi8>, memref<16x3xi8, strided<[4, 1]>>
  return
}

// CHECK-LABEL: func.func @rows_of_pixels(
// CHECK: vector.transpose
func.func @rows_of_pixels(%v: vector<2x3x16xi8>, %m: memref<2x16x3xi8>) {
  %c0 = arith.constant 0 : index
  // expected-remark @below {{[transposed-square] 'vector.transpose' all dimensions but two must be 1, but got [2, 3, 16]}}
  %t = vector.transpose %v, [0, 2, 1] : vector<2x3x16xi8> to vector<2x16x3xi8>
  // expected-remark @below {{[pixel-write] 'vector.transfer_write' pixels must be one row of at most 64, but got [2, 16]}}
  vector.transfer_write %t, %m[%c0, %c0, %c0] {in_bounds = [true, true, true]} : vector<2x16x3xi8>, memref<2x16x3xi8>
  return
}

// CHECK-LABEL: func.func @other_order(
// CHECK: vector.transpose
func.func @other_order(%v: vector<3x1x16xi8>, %m: memref<1x16x3xi8>) {
  %c0 = arith.constant 0 : index
  // expected-remark @below {{[transposed-square] 'vector.transpose' bytes must be from 5 by 5 to 16 by 64, but got 3 rows of 16}}
  %t = vector.transpose %v, [1, 2, 0] : vector<3x1x16xi8> to vector<1x16x3xi8>
  // expected-remark @below {{[pixel-write] 'vector.transfer_write' innermost dimensions alone must be exchanged}}
  vector.transfer_write %t, %m[%c0, %c0, %c0] {in_bounds = [true, true, true]} : vector<1x16x3xi8>, memref<1x16x3xi8>
  return
}

// CHECK-LABEL: func.func @out_of_bounds(
// CHECK: vector.transpose
func.func @out_of_bounds(%v: vector<3x16xi8>, %m: memref<20x3xi8>, %i: index) {
  %c0 = arith.constant 0 : index
  // expected-remark @below {{[transposed-square] 'vector.transpose' bytes must be from 5 by 5 to 16 by 64, but got 3 rows of 16}}
  %t = vector.transpose %v, [1, 0] : vector<3x16xi8> to vector<16x3xi8>
  // expected-remark @below {{[pixel-write] 'vector.transfer_write' bytes must be accessed in bounds}}
  vector.transfer_write %t, %m[%i, %c0] {in_bounds = [false, true]} : vector<16x3xi8>, memref<20x3xi8>
  return
}
