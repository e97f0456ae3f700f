// RUN: %python %S/Inputs/x86_step.py %s > %t && filecheck %s --input-file=%t

// A contraction of signed words along two taps is one `vpdpwssd` for each vector of the result; one of words with bytes, or
// of unsigned words, is no such contraction.

// CHECK-LABEL: func.func @vectors_of_16(
// CHECK-COUNT-6: "llvm.x86.avx512.vpdpwssd.512"
// CHECK-NOT: vector.contract
func.func @vectors_of_16(%x: memref<3x2xi16>, %w: memref<2x16x2xi16>, %y: vector<3x2x16xi32>) -> vector<3x2x16xi32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0 : i16
  %a = vector.transfer_read %x[%c0, %c0], %zero {in_bounds = [true, true]} : memref<3x2xi16>, vector<3x2xi16>
  %b = vector.transfer_read %w[%c0, %c0, %c0], %zero {in_bounds = [true, true, true]} : memref<2x16x2xi16>, vector<2x16x2xi16>
  %c = arith.extsi %a : vector<3x2xi16> to vector<3x2xi32>
  %d = arith.extsi %b : vector<2x16x2xi16> to vector<2x16x2xi32>
  %0 = vector.contract {
    indexing_maps = [affine_map<(r, v, l, t) -> (r, t)>, affine_map<(r, v, l, t) -> (v, l, t)>,
                     affine_map<(r, v, l, t) -> (r, v, l)>],
    iterator_types = ["parallel", "parallel", "parallel", "reduction"], kind = #vector.kind<add>
  } %c, %d, %y : vector<3x2xi32>, vector<2x16x2xi32> into vector<3x2x16xi32>
  return %0 : vector<3x2x16xi32>
}

// CHECK-LABEL: func.func @vectors_of_8(
// CHECK-COUNT-6: "llvm.x86.avx512.vpdpwssd.256"
// CHECK-NOT: vector.contract
func.func @vectors_of_8(%x: memref<3x2xi16>, %w: memref<2x8x2xi16>, %y: vector<3x2x8xi32>) -> vector<3x2x8xi32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0 : i16
  %a = vector.transfer_read %x[%c0, %c0], %zero {in_bounds = [true, true]} : memref<3x2xi16>, vector<3x2xi16>
  %b = vector.transfer_read %w[%c0, %c0, %c0], %zero {in_bounds = [true, true, true]} : memref<2x8x2xi16>, vector<2x8x2xi16>
  %c = arith.extsi %a : vector<3x2xi16> to vector<3x2xi32>
  %d = arith.extsi %b : vector<2x8x2xi16> to vector<2x8x2xi32>
  %0 = vector.contract {
    indexing_maps = [affine_map<(r, v, l, t) -> (r, t)>, affine_map<(r, v, l, t) -> (v, l, t)>,
                     affine_map<(r, v, l, t) -> (r, v, l)>],
    iterator_types = ["parallel", "parallel", "parallel", "reduction"], kind = #vector.kind<add>
  } %c, %d, %y : vector<3x2xi32>, vector<2x8x2xi32> into vector<3x2x8xi32>
  return %0 : vector<3x2x8xi32>
}

// CHECK-LABEL: func.func @vectors_of_4(
// CHECK-COUNT-6: "llvm.x86.avx512.vpdpwssd.128"
// CHECK-NOT: vector.contract
func.func @vectors_of_4(%x: memref<3x2xi16>, %w: memref<2x4x2xi16>, %y: vector<3x2x4xi32>) -> vector<3x2x4xi32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0 : i16
  %a = vector.transfer_read %x[%c0, %c0], %zero {in_bounds = [true, true]} : memref<3x2xi16>, vector<3x2xi16>
  %b = vector.transfer_read %w[%c0, %c0, %c0], %zero {in_bounds = [true, true, true]} : memref<2x4x2xi16>, vector<2x4x2xi16>
  %c = arith.extsi %a : vector<3x2xi16> to vector<3x2xi32>
  %d = arith.extsi %b : vector<2x4x2xi16> to vector<2x4x2xi32>
  %0 = vector.contract {
    indexing_maps = [affine_map<(r, v, l, t) -> (r, t)>, affine_map<(r, v, l, t) -> (v, l, t)>,
                     affine_map<(r, v, l, t) -> (r, v, l)>],
    iterator_types = ["parallel", "parallel", "parallel", "reduction"], kind = #vector.kind<add>
  } %c, %d, %y : vector<3x2xi32>, vector<2x4x2xi32> into vector<3x2x4xi32>
  return %0 : vector<3x2x4xi32>
}

// CHECK-LABEL: func.func @weights_first(
// CHECK-COUNT-6: "llvm.x86.avx512.vpdpwssd.512"
// CHECK-NOT: vector.contract
func.func @weights_first(%x: memref<3x2xi16>, %w: memref<2x16x2xi16>, %y: vector<3x2x16xi32>) -> vector<3x2x16xi32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0 : i16
  %a = vector.transfer_read %x[%c0, %c0], %zero {in_bounds = [true, true]} : memref<3x2xi16>, vector<3x2xi16>
  %b = vector.transfer_read %w[%c0, %c0, %c0], %zero {in_bounds = [true, true, true]} : memref<2x16x2xi16>, vector<2x16x2xi16>
  %c = arith.extsi %a : vector<3x2xi16> to vector<3x2xi32>
  %d = arith.extsi %b : vector<2x16x2xi16> to vector<2x16x2xi32>
  %0 = vector.contract {
    indexing_maps = [affine_map<(r, v, l, t) -> (v, l, t)>, affine_map<(r, v, l, t) -> (r, t)>,
                     affine_map<(r, v, l, t) -> (r, v, l)>],
    iterator_types = ["parallel", "parallel", "parallel", "reduction"], kind = #vector.kind<add>
  } %d, %c, %y : vector<2x16x2xi32>, vector<3x2xi32> into vector<3x2x16xi32>
  return %0 : vector<3x2x16xi32>
}

// CHECK-LABEL: func.func @four_taps(
// CHECK-NOT: vpdp
// CHECK: vector.contract
func.func @four_taps(%x: memref<3x4xi16>, %w: memref<2x16x4xi16>, %y: vector<3x2x16xi32>) -> vector<3x2x16xi32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0 : i16
  %a = vector.transfer_read %x[%c0, %c0], %zero {in_bounds = [true, true]} : memref<3x4xi16>, vector<3x4xi16>
  %b = vector.transfer_read %w[%c0, %c0, %c0], %zero {in_bounds = [true, true, true]} : memref<2x16x4xi16>, vector<2x16x4xi16>
  %c = arith.extsi %a : vector<3x4xi16> to vector<3x4xi32>
  %d = arith.extsi %b : vector<2x16x4xi16> to vector<2x16x4xi32>
  // expected-remark @below {{[dot-product] 'vector.contract' innermost reduction must have 2 taps, but got 4}}
  // expected-remark @below {{[interleaved-dot] 'vector.contract' factors must be bytes, but got 16 bits}}
  %0 = vector.contract {
    indexing_maps = [affine_map<(r, v, l, t) -> (r, t)>, affine_map<(r, v, l, t) -> (v, l, t)>,
                     affine_map<(r, v, l, t) -> (r, v, l)>],
    iterator_types = ["parallel", "parallel", "parallel", "reduction"], kind = #vector.kind<add>
  } %c, %d, %y : vector<3x4xi32>, vector<2x16x4xi32> into vector<3x2x16xi32>
  return %0 : vector<3x2x16xi32>
}

// CHECK-LABEL: func.func @words_by_bytes(
// CHECK-NOT: vpdp
// CHECK: vector.contract
func.func @words_by_bytes(%x: memref<3x2xi16>, %w: memref<2x16x2xi8>, %y: vector<3x2x16xi32>) -> vector<3x2x16xi32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0 : i16
  %byte = arith.constant 0 : i8
  %a = vector.transfer_read %x[%c0, %c0], %zero {in_bounds = [true, true]} : memref<3x2xi16>, vector<3x2xi16>
  %b = vector.transfer_read %w[%c0, %c0, %c0], %byte {in_bounds = [true, true, true]} : memref<2x16x2xi8>, vector<2x16x2xi8>
  %c = arith.extsi %a : vector<3x2xi16> to vector<3x2xi32>
  %d = arith.extsi %b : vector<2x16x2xi8> to vector<2x16x2xi32>
  %0 = vector.contract {
    indexing_maps = [affine_map<(r, v, l, t) -> (r, t)>, affine_map<(r, v, l, t) -> (v, l, t)>,
                     affine_map<(r, v, l, t) -> (r, v, l)>],
    iterator_types = ["parallel", "parallel", "parallel", "reduction"], kind = #vector.kind<add>
  } %c, %d, %y : vector<3x2xi32>, vector<2x16x2xi32> into vector<3x2x16xi32>
  return %0 : vector<3x2x16xi32>
}

// CHECK-LABEL: func.func @unsigned_words(
// CHECK-NOT: vpdp
// CHECK: vector.contract
func.func @unsigned_words(%x: memref<3x2xi16>, %w: memref<2x16x2xi16>, %y: vector<3x2x16xi32>) -> vector<3x2x16xi32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0 : i16
  %a = vector.transfer_read %x[%c0, %c0], %zero {in_bounds = [true, true]} : memref<3x2xi16>, vector<3x2xi16>
  %b = vector.transfer_read %w[%c0, %c0, %c0], %zero {in_bounds = [true, true, true]} : memref<2x16x2xi16>, vector<2x16x2xi16>
  %c = arith.extui %a : vector<3x2xi16> to vector<3x2xi32>
  %d = arith.extsi %b : vector<2x16x2xi16> to vector<2x16x2xi32>
  %0 = vector.contract {
    indexing_maps = [affine_map<(r, v, l, t) -> (r, t)>, affine_map<(r, v, l, t) -> (v, l, t)>,
                     affine_map<(r, v, l, t) -> (r, v, l)>],
    iterator_types = ["parallel", "parallel", "parallel", "reduction"], kind = #vector.kind<add>
  } %c, %d, %y : vector<3x2xi32>, vector<2x16x2xi32> into vector<3x2x16xi32>
  return %0 : vector<3x2x16xi32>
}
