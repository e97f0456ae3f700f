// RUN: %python %S/Inputs/x86_step.py %s > %t && filecheck %s --input-file=%t

// Two transpositions are one, or none where the second takes the first back.

// CHECK-LABEL: func.func @back(
// CHECK-SAME: %[[X:.*]]: vector<2x1x64xi8>)
// CHECK-NOT: vector.transpose
// CHECK: return %[[X]]
func.func @back(%x: vector<2x1x64xi8>) -> vector<2x1x64xi8> {
  %0 = vector.transpose %x, [1, 0, 2] : vector<2x1x64xi8> to vector<1x2x64xi8>
  %1 = vector.transpose %0, [1, 0, 2] : vector<1x2x64xi8> to vector<2x1x64xi8>
  return %1 : vector<2x1x64xi8>
}

// CHECK-LABEL: func.func @other(
// CHECK-SAME: %[[X:.*]]: vector<2x3x5xi8>)
// CHECK: vector.transpose %[[X]], [2, 1, 0] : vector<2x3x5xi8> to vector<5x3x2xi8>
// CHECK-NOT: vector.transpose
func.func @other(%x: vector<2x3x5xi8>) -> vector<5x3x2xi8> {
  %0 = vector.transpose %x, [1, 2, 0] : vector<2x3x5xi8> to vector<3x5x2xi8>
  // expected-remark @below {{[transposed-square] 'vector.transpose' all dimensions but two must be 1, but got [2, 3, 5]}}
  %1 = vector.transpose %0, [1, 0, 2] : vector<3x5x2xi8> to vector<5x3x2xi8>
  return %1 : vector<5x3x2xi8>
}

// CHECK-LABEL: func.func @one(
// CHECK: vector.transpose %{{.*}}, [1, 0] : vector<2x3xi8> to vector<3x2xi8>
func.func @one(%x: vector<2x3xi8>) -> vector<3x2xi8> {
  // expected-remark @below {{[transposed-square] 'vector.transpose' bytes must be from 5 by 5 to 16 by 64, but got 2 rows of 3}}
  %0 = vector.transpose %x, [1, 0] : vector<2x3xi8> to vector<3x2xi8>
  return %0 : vector<3x2xi8>
}
