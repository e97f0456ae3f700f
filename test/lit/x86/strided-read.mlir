// RUN: %python %S/Inputs/x86_step.py %s > %t && filecheck %s --input-file=%t

// Bytes and numbers that are a constant distance apart are permuted out of the first and the last vector of those that they span.

// CHECK-LABEL: func.func @two_vectors(
// CHECK: %[[FIRST:.*]] = llvm.load {{.*}} vector<64xi8>
// CHECK: %[[LAST:.*]] = llvm.load {{.*}} vector<64xi8>
// CHECK: vector.shuffle %[[FIRST]], %[[LAST]] [0, 6, 12, 18, 24, 30, 36, 42, 48, 54, 60, 103, 109, 115, 121, 127]
// CHECK-NOT: vector.transfer_read
func.func @two_vectors(%m: memref<7x16xi8, strided<[500, 6]>>, %i: index) -> vector<16xi8> {
  %p = ub.poison : i8
  %c0 = arith.constant 0 : index
  %0 = vector.transfer_read %m[%i, %c0], %p {in_bounds = [true]} : memref<7x16xi8, strided<[500, 6]>>, vector<16xi8>
  return %0 : vector<16xi8>
}

// Eleven bytes: two loads of eight.

// CHECK-LABEL: func.func @short_row(
// CHECK: llvm.load {{.*}} vector<8xi8>
// CHECK: llvm.load {{.*}} vector<8xi8>
// CHECK: vector.shuffle {{.*}} [0, 2, 4, 6, 13, 15]
func.func @short_row(%m: memref<6xi8, strided<[2]>>) -> vector<1x6xi8> {
  %p = ub.poison : i8
  %c0 = arith.constant 0 : index
  %e = memref.expand_shape %m [[0, 1]] output_shape [1, 6] : memref<6xi8, strided<[2]>> into memref<1x6xi8, strided<[12, 2]>>
  %0 = vector.transfer_read %e[%c0, %c0], %p {in_bounds = [true, true]} : memref<1x6xi8, strided<[12, 2]>>, vector<1x6xi8>
  return %0 : vector<1x6xi8>
}

// CHECK-LABEL: func.func @numbers(
// CHECK-COUNT-2: llvm.load {{.*}} vector<16xf32>
// CHECK: vector.shuffle {{.*}} [0, 2, 4, 6, 8, 10, 12, 14, 17, 19, 21, 23, 25, 27, 29, 31]
func.func @numbers(%m: memref<16xf32, strided<[2]>>) -> vector<16xf32> {
  %p = ub.poison : f32
  %c0 = arith.constant 0 : index
  %0 = vector.transfer_read %m[%c0], %p {in_bounds = [true]} : memref<16xf32, strided<[2]>>, vector<16xf32>
  return %0 : vector<16xf32>
}

// CHECK-LABEL: func.func @contiguous(
// CHECK: vector.transfer_read
func.func @contiguous(%m: memref<16xi8>) -> vector<16xi8> {
  %p = ub.poison : i8
  %c0 = arith.constant 0 : index
  %0 = vector.transfer_read %m[%c0], %p {in_bounds = [true]} : memref<16xi8>, vector<16xi8>
  return %0 : vector<16xi8>
}

// CHECK-LABEL: func.func @too_far(
// CHECK: vector.transfer_read
func.func @too_far(%m: memref<16xi8, strided<[9]>>) -> vector<16xi8> {
  %p = ub.poison : i8
  %c0 = arith.constant 0 : index
  // expected-remark @below {{[strided-read] 'vector.transfer_read' elements must span 8 to 128 bytes, but got 136}}
  %0 = vector.transfer_read %m[%c0], %p {in_bounds = [true]} : memref<16xi8, strided<[9]>>, vector<16xi8>
  return %0 : vector<16xi8>
}

// CHECK-LABEL: func.func @rows(
// CHECK: vector.transfer_read
func.func @rows(%m: memref<2x16xi8, strided<[100, 3]>>) -> vector<2x16xi8> {
  %p = ub.poison : i8
  %c0 = arith.constant 0 : index
  %0 = vector.transfer_read %m[%c0, %c0], %p {in_bounds = [true, true]} : memref<2x16xi8, strided<[100, 3]>>, vector<2x16xi8>
  return %0 : vector<2x16xi8>
}

// CHECK-LABEL: func.func @backwards(
// CHECK: vector.transfer_read
func.func @backwards(%m: memref<16xi8, strided<[-3], offset: 45>>) -> vector<16xi8> {
  %p = ub.poison : i8
  %c0 = arith.constant 0 : index
  // expected-remark @below {{[strided-read] 'vector.transfer_read' elements must lie at strides that are not negative, but got [-3]}}
  %0 = vector.transfer_read %m[%c0], %p {in_bounds = [true]} : memref<16xi8, strided<[-3], offset: 45>>, vector<16xi8>
  return %0 : vector<16xi8>
}

// CHECK-LABEL: func.func @out_of_bounds(
// CHECK: vector.transfer_read
func.func @out_of_bounds(%m: memref<16xi8, strided<[3]>>, %i: index) -> vector<16xi8> {
  %p = arith.constant 0 : i8
  // expected-remark @below {{[strided-read] 'vector.transfer_read' elements must be accessed in bounds}}
  %0 = vector.transfer_read %m[%i], %p : memref<16xi8, strided<[3]>>, vector<16xi8>
  return %0 : vector<16xi8>
}
