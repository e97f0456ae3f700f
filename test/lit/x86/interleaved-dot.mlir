// RUN: %python %S/Inputs/x86_step.py %s > %t && filecheck %s --input-file=%t

// A contraction of tiles along taps unpacks the bytes of four taps, so that each 32-bit lane has its own four.

// CHECK-LABEL: func.func @four_taps(
// CHECK: llvm.shufflevector
// CHECK-COUNT-4: "llvm.x86.avx512.vpdpbusd.512"
// CHECK-NOT: vector.contract
func.func @four_taps(%x: memref<1024xi8>, %w: memref<1024xi8>, %y: vector<2x2x2x2x4xi32>) -> vector<2x2x2x2x4xi32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0 : i8
  %u = memref.reinterpret_cast %x to offset: [0], sizes: [4, 2, 2, 2, 2, 4], strides: [64, 8, 4, 32, 16, 1] : memref<1024xi8> to memref<4x2x2x2x2x4xi8, strided<[64, 8, 4, 32, 16, 1]>>
  %v = memref.reinterpret_cast %w to offset: [0], sizes: [2, 2, 2, 2, 4, 4], strides: [128, 64, 32, 16, 4, 1] : memref<1024xi8> to memref<2x2x2x2x4x4xi8, strided<[128, 64, 32, 16, 4, 1]>>
  %a = vector.transfer_read %u[%c0, %c0, %c0, %c0, %c0, %c0], %zero {in_bounds = [true, true, true, true, true, true]} : memref<4x2x2x2x2x4xi8, strided<[64, 8, 4, 32, 16, 1]>>, vector<4x2x2x2x2x4xi8>
  %b = vector.transfer_read %v[%c0, %c0, %c0, %c0, %c0, %c0], %zero {in_bounds = [true, true, true, true, true, true]} : memref<2x2x2x2x4x4xi8, strided<[128, 64, 32, 16, 4, 1]>>, vector<2x2x2x2x4x4xi8>
  %c = arith.extui %a : vector<4x2x2x2x2x4xi8> to vector<4x2x2x2x2x4xi32>
  %d = arith.extsi %b : vector<2x2x2x2x4x4xi8> to vector<2x2x2x2x4x4xi32>
  %0 = vector.contract {
    indexing_maps = [affine_map<(t, a, b, c, d, e) -> (t, a, b, c, d, e)>, affine_map<(t, a, b, c, d, e) -> (a, b, c, d, e, t)>, affine_map<(t, a, b, c, d, e) -> (a, b, c, d, e)>],
    iterator_types = ["reduction", "parallel", "parallel", "parallel", "parallel", "parallel"], kind = #vector.kind<add>
  } %c, %d, %y : vector<4x2x2x2x2x4xi32>, vector<2x2x2x2x4x4xi32> into vector<2x2x2x2x4xi32>
  return %0 : vector<2x2x2x2x4xi32>
}

// CHECK-LABEL: func.func @three_taps(
// CHECK-COUNT-4: "llvm.x86.avx512.vpdpbusd.512"
// CHECK-NOT: vector.contract
func.func @three_taps(%x: memref<1024xi8>, %w: memref<1024xi8>, %y: vector<2x2x2x2x4xi32>) -> vector<2x2x2x2x4xi32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0 : i8
  %u = memref.reinterpret_cast %x to offset: [0], sizes: [3, 2, 2, 2, 2, 4], strides: [64, 8, 4, 32, 16, 1] : memref<1024xi8> to memref<3x2x2x2x2x4xi8, strided<[64, 8, 4, 32, 16, 1]>>
  %v = memref.reinterpret_cast %w to offset: [0], sizes: [2, 2, 2, 2, 4, 3], strides: [128, 64, 32, 16, 4, 1] : memref<1024xi8> to memref<2x2x2x2x4x3xi8, strided<[128, 64, 32, 16, 4, 1]>>
  %a = vector.transfer_read %u[%c0, %c0, %c0, %c0, %c0, %c0], %zero {in_bounds = [true, true, true, true, true, true]} : memref<3x2x2x2x2x4xi8, strided<[64, 8, 4, 32, 16, 1]>>, vector<3x2x2x2x2x4xi8>
  %b = vector.transfer_read %v[%c0, %c0, %c0, %c0, %c0, %c0], %zero {in_bounds = [true, true, true, true, true, true]} : memref<2x2x2x2x4x3xi8, strided<[128, 64, 32, 16, 4, 1]>>, vector<2x2x2x2x4x3xi8>
  %c = arith.extui %a : vector<3x2x2x2x2x4xi8> to vector<3x2x2x2x2x4xi32>
  %d = arith.extsi %b : vector<2x2x2x2x4x3xi8> to vector<2x2x2x2x4x3xi32>
  %0 = vector.contract {
    indexing_maps = [affine_map<(t, a, b, c, d, e) -> (t, a, b, c, d, e)>, affine_map<(t, a, b, c, d, e) -> (a, b, c, d, e, t)>, affine_map<(t, a, b, c, d, e) -> (a, b, c, d, e)>],
    iterator_types = ["reduction", "parallel", "parallel", "parallel", "parallel", "parallel"], kind = #vector.kind<add>
  } %c, %d, %y : vector<3x2x2x2x2x4xi32>, vector<2x2x2x2x4x3xi32> into vector<2x2x2x2x4xi32>
  return %0 : vector<2x2x2x2x4xi32>
}

// Bytes in several places of a tile are loaded once, none before the first of them.
// CHECK-LABEL: func.func @overlapping(
// CHECK: llvm.load {{.*}} -> vector<52xi8>
// CHECK-COUNT-4: "llvm.x86.avx512.vpdpbusd.512"
func.func @overlapping(%x: memref<1024xi8>, %w: memref<1024xi8>, %y: vector<2x2x2x2x4xi32>) -> vector<2x2x2x2x4xi32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0 : i8
  %u = memref.reinterpret_cast %x to offset: [0], sizes: [4, 2, 2, 2, 2, 4], strides: [64, 8, 4, 24, 12, 1] : memref<1024xi8> to memref<4x2x2x2x2x4xi8, strided<[64, 8, 4, 24, 12, 1]>>
  %v = memref.reinterpret_cast %w to offset: [0], sizes: [2, 2, 2, 2, 4, 4], strides: [128, 64, 32, 16, 4, 1] : memref<1024xi8> to memref<2x2x2x2x4x4xi8, strided<[128, 64, 32, 16, 4, 1]>>
  %a = vector.transfer_read %u[%c0, %c0, %c0, %c0, %c0, %c0], %zero {in_bounds = [true, true, true, true, true, true]} : memref<4x2x2x2x2x4xi8, strided<[64, 8, 4, 24, 12, 1]>>, vector<4x2x2x2x2x4xi8>
  %b = vector.transfer_read %v[%c0, %c0, %c0, %c0, %c0, %c0], %zero {in_bounds = [true, true, true, true, true, true]} : memref<2x2x2x2x4x4xi8, strided<[128, 64, 32, 16, 4, 1]>>, vector<2x2x2x2x4x4xi8>
  %c = arith.extui %a : vector<4x2x2x2x2x4xi8> to vector<4x2x2x2x2x4xi32>
  %d = arith.extsi %b : vector<2x2x2x2x4x4xi8> to vector<2x2x2x2x4x4xi32>
  %0 = vector.contract {
    indexing_maps = [affine_map<(t, a, b, c, d, e) -> (t, a, b, c, d, e)>, affine_map<(t, a, b, c, d, e) -> (a, b, c, d, e, t)>, affine_map<(t, a, b, c, d, e) -> (a, b, c, d, e)>],
    iterator_types = ["reduction", "parallel", "parallel", "parallel", "parallel", "parallel"], kind = #vector.kind<add>
  } %c, %d, %y : vector<4x2x2x2x2x4xi32>, vector<2x2x2x2x4x4xi32> into vector<2x2x2x2x4xi32>
  return %0 : vector<2x2x2x2x4xi32>
}

// CHECK-LABEL: func.func @five_taps(
// CHECK-NOT: vpdpbusd
// CHECK: vector.contract
func.func @five_taps(%x: memref<1024xi8>, %w: memref<1024xi8>, %y: vector<2x2x2x2x4xi32>) -> vector<2x2x2x2x4xi32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0 : i8
  %u = memref.reinterpret_cast %x to offset: [0], sizes: [5, 2, 2, 2, 2, 4], strides: [64, 8, 4, 32, 16, 1] : memref<1024xi8> to memref<5x2x2x2x2x4xi8, strided<[64, 8, 4, 32, 16, 1]>>
  %v = memref.reinterpret_cast %w to offset: [0], sizes: [2, 2, 2, 2, 4, 5], strides: [128, 64, 32, 16, 4, 1] : memref<1024xi8> to memref<2x2x2x2x4x5xi8, strided<[128, 64, 32, 16, 4, 1]>>
  %a = vector.transfer_read %u[%c0, %c0, %c0, %c0, %c0, %c0], %zero {in_bounds = [true, true, true, true, true, true]} : memref<5x2x2x2x2x4xi8, strided<[64, 8, 4, 32, 16, 1]>>, vector<5x2x2x2x2x4xi8>
  %b = vector.transfer_read %v[%c0, %c0, %c0, %c0, %c0, %c0], %zero {in_bounds = [true, true, true, true, true, true]} : memref<2x2x2x2x4x5xi8, strided<[128, 64, 32, 16, 4, 1]>>, vector<2x2x2x2x4x5xi8>
  %c = arith.extui %a : vector<5x2x2x2x2x4xi8> to vector<5x2x2x2x2x4xi32>
  %d = arith.extsi %b : vector<2x2x2x2x4x5xi8> to vector<2x2x2x2x4x5xi32>
  // expected-remark @below {{[dot-product] 'vector.contract' innermost loop of both factors must be one reduction}}
  // expected-remark @below {{[interleaved-dot] 'vector.contract' weights must have at most 4 taps, but got 5}}
  %0 = vector.contract {
    indexing_maps = [affine_map<(t, a, b, c, d, e) -> (t, a, b, c, d, e)>, affine_map<(t, a, b, c, d, e) -> (a, b, c, d, e, t)>, affine_map<(t, a, b, c, d, e) -> (a, b, c, d, e)>],
    iterator_types = ["reduction", "parallel", "parallel", "parallel", "parallel", "parallel"], kind = #vector.kind<add>
  } %c, %d, %y : vector<5x2x2x2x2x4xi32>, vector<2x2x2x2x4x5xi32> into vector<2x2x2x2x4xi32>
  return %0 : vector<2x2x2x2x4xi32>
}

// CHECK-LABEL: func.func @bare_weights(
// CHECK-NOT: vpdpbusd
// CHECK: vector.contract
func.func @bare_weights(%x: memref<1024xi8>, %v: memref<2x2x2x2x4x3xi8, strided<[128, 64, 32, 16, 4, 1]>>, %y: vector<2x2x2x2x4xi32>) -> vector<2x2x2x2x4xi32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0 : i8
  %u = memref.reinterpret_cast %x to offset: [0], sizes: [3, 2, 2, 2, 2, 4], strides: [64, 8, 4, 32, 16, 1] : memref<1024xi8> to memref<3x2x2x2x2x4xi8, strided<[64, 8, 4, 32, 16, 1]>>
  %a = vector.transfer_read %u[%c0, %c0, %c0, %c0, %c0, %c0], %zero {in_bounds = [true, true, true, true, true, true]} : memref<3x2x2x2x2x4xi8, strided<[64, 8, 4, 32, 16, 1]>>, vector<3x2x2x2x2x4xi8>
  %b = vector.transfer_read %v[%c0, %c0, %c0, %c0, %c0, %c0], %zero {in_bounds = [true, true, true, true, true, true]} : memref<2x2x2x2x4x3xi8, strided<[128, 64, 32, 16, 4, 1]>>, vector<2x2x2x2x4x3xi8>
  %c = arith.extui %a : vector<3x2x2x2x2x4xi8> to vector<3x2x2x2x2x4xi32>
  %d = arith.extsi %b : vector<2x2x2x2x4x3xi8> to vector<2x2x2x2x4x3xi32>
  // expected-remark @below {{[dot-product] 'vector.contract' innermost loop of both factors must be one reduction}}
  // expected-remark @below {{[interleaved-dot] 'vector.contract' weights of fewer than 4 taps must be a view of a buffer that holds four}}
  %0 = vector.contract {
    indexing_maps = [affine_map<(t, a, b, c, d, e) -> (t, a, b, c, d, e)>, affine_map<(t, a, b, c, d, e) -> (a, b, c, d, e, t)>, affine_map<(t, a, b, c, d, e) -> (a, b, c, d, e)>],
    iterator_types = ["reduction", "parallel", "parallel", "parallel", "parallel", "parallel"], kind = #vector.kind<add>
  } %c, %d, %y : vector<3x2x2x2x2x4xi32>, vector<2x2x2x2x4x3xi32> into vector<2x2x2x2x4xi32>
  return %0 : vector<2x2x2x2x4xi32>
}

// CHECK-LABEL: func.func @weights_apart(
// CHECK-NOT: vpdpbusd
// CHECK: vector.contract
func.func @weights_apart(%x: memref<1024xi8>, %w: memref<1024xi8>, %y: vector<2x2x2x2x4xi32>) -> vector<2x2x2x2x4xi32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0 : i8
  %u = memref.reinterpret_cast %x to offset: [0], sizes: [4, 2, 2, 2, 2, 4], strides: [64, 8, 4, 32, 16, 1] : memref<1024xi8> to memref<4x2x2x2x2x4xi8, strided<[64, 8, 4, 32, 16, 1]>>
  %v = memref.reinterpret_cast %w to offset: [0], sizes: [2, 2, 2, 2, 4, 4], strides: [160, 80, 40, 20, 5, 1] : memref<1024xi8> to memref<2x2x2x2x4x4xi8, strided<[160, 80, 40, 20, 5, 1]>>
  %a = vector.transfer_read %u[%c0, %c0, %c0, %c0, %c0, %c0], %zero {in_bounds = [true, true, true, true, true, true]} : memref<4x2x2x2x2x4xi8, strided<[64, 8, 4, 32, 16, 1]>>, vector<4x2x2x2x2x4xi8>
  %b = vector.transfer_read %v[%c0, %c0, %c0, %c0, %c0, %c0], %zero {in_bounds = [true, true, true, true, true, true]} : memref<2x2x2x2x4x4xi8, strided<[160, 80, 40, 20, 5, 1]>>, vector<2x2x2x2x4x4xi8>
  %c = arith.extui %a : vector<4x2x2x2x2x4xi8> to vector<4x2x2x2x2x4xi32>
  %d = arith.extsi %b : vector<2x2x2x2x4x4xi8> to vector<2x2x2x2x4x4xi32>
  // expected-remark @below {{[dot-product] 'vector.contract' innermost loop of both factors must be one reduction}}
  // expected-remark @below {{[interleaved-dot] 'vector.contract' weights must lie in K groups of taps, lane by lane}}
  %0 = vector.contract {
    indexing_maps = [affine_map<(t, a, b, c, d, e) -> (t, a, b, c, d, e)>, affine_map<(t, a, b, c, d, e) -> (a, b, c, d, e, t)>, affine_map<(t, a, b, c, d, e) -> (a, b, c, d, e)>],
    iterator_types = ["reduction", "parallel", "parallel", "parallel", "parallel", "parallel"], kind = #vector.kind<add>
  } %c, %d, %y : vector<4x2x2x2x2x4xi32>, vector<2x2x2x2x4x4xi32> into vector<2x2x2x2x4xi32>
  return %0 : vector<2x2x2x2x4xi32>
}

// CHECK-LABEL: func.func @taps_first(
// CHECK-NOT: vpdpbusd
// CHECK: vector.contract
func.func @taps_first(%x: memref<1024xi8>, %w: memref<1024xi8>, %y: vector<2x2x2x2x4xi32>) -> vector<2x2x2x2x4xi32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0 : i8
  %u = memref.reinterpret_cast %x to offset: [0], sizes: [4, 2, 2, 2, 2, 4], strides: [64, 8, 4, 32, 16, 1] : memref<1024xi8> to memref<4x2x2x2x2x4xi8, strided<[64, 8, 4, 32, 16, 1]>>
  %v = memref.reinterpret_cast %w to offset: [0], sizes: [4, 2, 2, 2, 2, 4], strides: [1, 128, 64, 32, 16, 4] : memref<1024xi8> to memref<4x2x2x2x2x4xi8, strided<[1, 128, 64, 32, 16, 4]>>
  %a = vector.transfer_read %u[%c0, %c0, %c0, %c0, %c0, %c0], %zero {in_bounds = [true, true, true, true, true, true]} : memref<4x2x2x2x2x4xi8, strided<[64, 8, 4, 32, 16, 1]>>, vector<4x2x2x2x2x4xi8>
  %b = vector.transfer_read %v[%c0, %c0, %c0, %c0, %c0, %c0], %zero {in_bounds = [true, true, true, true, true, true]} : memref<4x2x2x2x2x4xi8, strided<[1, 128, 64, 32, 16, 4]>>, vector<4x2x2x2x2x4xi8>
  %c = arith.extui %a : vector<4x2x2x2x2x4xi8> to vector<4x2x2x2x2x4xi32>
  %d = arith.extsi %b : vector<4x2x2x2x2x4xi8> to vector<4x2x2x2x2x4xi32>
  // expected-remark @below {{[dot-product] 'vector.contract' innermost loop of both factors must be one reduction}}
  // expected-remark @below {{[interleaved-dot] 'vector.contract' innermost loops of the weights must be the lanes of the result, and taps}}
  %0 = vector.contract {
    indexing_maps = [affine_map<(t, a, b, c, d, e) -> (t, a, b, c, d, e)>, affine_map<(t, a, b, c, d, e) -> (t, a, b, c, d, e)>, affine_map<(t, a, b, c, d, e) -> (a, b, c, d, e)>],
    iterator_types = ["reduction", "parallel", "parallel", "parallel", "parallel", "parallel"], kind = #vector.kind<add>
  } %c, %d, %y : vector<4x2x2x2x2x4xi32>, vector<4x2x2x2x2x4xi32> into vector<2x2x2x2x4xi32>
  return %0 : vector<2x2x2x2x4xi32>
}

// CHECK-LABEL: func.func @turned_data(
// CHECK-NOT: vpdpbusd
// CHECK: vector.contract
func.func @turned_data(%x: memref<1024xi8>, %w: memref<1024xi8>, %y: vector<2x2x2x2x4xi32>) -> vector<2x2x2x2x4xi32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0 : i8
  %u = memref.reinterpret_cast %x to offset: [0], sizes: [4, 2, 2, 2, 2, 4], strides: [64, 8, 4, 32, 16, 1] : memref<1024xi8> to memref<4x2x2x2x2x4xi8, strided<[64, 8, 4, 32, 16, 1]>>
  %v = memref.reinterpret_cast %w to offset: [0], sizes: [2, 2, 2, 2, 4, 4], strides: [128, 64, 32, 16, 4, 1] : memref<1024xi8> to memref<2x2x2x2x4x4xi8, strided<[128, 64, 32, 16, 4, 1]>>
  %a = vector.transfer_read %u[%c0, %c0, %c0, %c0, %c0, %c0], %zero {in_bounds = [true, true, true, true, true, true]} : memref<4x2x2x2x2x4xi8, strided<[64, 8, 4, 32, 16, 1]>>, vector<4x2x2x2x2x4xi8>
  %b = vector.transfer_read %v[%c0, %c0, %c0, %c0, %c0, %c0], %zero {in_bounds = [true, true, true, true, true, true]} : memref<2x2x2x2x4x4xi8, strided<[128, 64, 32, 16, 4, 1]>>, vector<2x2x2x2x4x4xi8>
  %c = arith.extui %a : vector<4x2x2x2x2x4xi8> to vector<4x2x2x2x2x4xi32>
  %d = arith.extsi %b : vector<2x2x2x2x4x4xi8> to vector<2x2x2x2x4x4xi32>
  // expected-remark @below {{[dot-product] 'vector.contract' innermost loop of both factors must be one reduction}}
  // expected-remark @below {{[interleaved-dot] 'vector.contract' innermost loops of the data must be the lanes of the result}}
  %0 = vector.contract {
    indexing_maps = [affine_map<(t, a, b, c, d, e) -> (t, b, a, c, d, e)>, affine_map<(t, a, b, c, d, e) -> (a, b, c, d, e, t)>, affine_map<(t, a, b, c, d, e) -> (a, b, c, d, e)>],
    iterator_types = ["reduction", "parallel", "parallel", "parallel", "parallel", "parallel"], kind = #vector.kind<add>
  } %c, %d, %y : vector<4x2x2x2x2x4xi32>, vector<2x2x2x2x4x4xi32> into vector<2x2x2x2x4xi32>
  return %0 : vector<2x2x2x2x4xi32>
}

// CHECK-LABEL: func.func @data_apart(
// CHECK-NOT: vpdpbusd
// CHECK: vector.contract
func.func @data_apart(%x: memref<1024xi8>, %w: memref<1024xi8>, %y: vector<2x2x2x2x4xi32>) -> vector<2x2x2x2x4xi32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0 : i8
  %u = memref.reinterpret_cast %x to offset: [0], sizes: [4, 2, 2, 2, 2, 4], strides: [2, 8, 4, 32, 16, 2] : memref<1024xi8> to memref<4x2x2x2x2x4xi8, strided<[2, 8, 4, 32, 16, 2]>>
  %v = memref.reinterpret_cast %w to offset: [0], sizes: [2, 2, 2, 2, 4, 4], strides: [128, 64, 32, 16, 4, 1] : memref<1024xi8> to memref<2x2x2x2x4x4xi8, strided<[128, 64, 32, 16, 4, 1]>>
  %a = vector.transfer_read %u[%c0, %c0, %c0, %c0, %c0, %c0], %zero {in_bounds = [true, true, true, true, true, true]} : memref<4x2x2x2x2x4xi8, strided<[2, 8, 4, 32, 16, 2]>>, vector<4x2x2x2x2x4xi8>
  %b = vector.transfer_read %v[%c0, %c0, %c0, %c0, %c0, %c0], %zero {in_bounds = [true, true, true, true, true, true]} : memref<2x2x2x2x4x4xi8, strided<[128, 64, 32, 16, 4, 1]>>, vector<2x2x2x2x4x4xi8>
  %c = arith.extui %a : vector<4x2x2x2x2x4xi8> to vector<4x2x2x2x2x4xi32>
  %d = arith.extsi %b : vector<2x2x2x2x4x4xi8> to vector<2x2x2x2x4x4xi32>
  // expected-remark @below {{[dot-product] 'vector.contract' innermost loop of both factors must be one reduction}}
  // expected-remark @below {{[interleaved-dot] 'vector.contract' data must lie in tiles of [2, 2, 2, 2, 4] bytes}}
  %0 = vector.contract {
    indexing_maps = [affine_map<(t, a, b, c, d, e) -> (t, a, b, c, d, e)>, affine_map<(t, a, b, c, d, e) -> (a, b, c, d, e, t)>, affine_map<(t, a, b, c, d, e) -> (a, b, c, d, e)>],
    iterator_types = ["reduction", "parallel", "parallel", "parallel", "parallel", "parallel"], kind = #vector.kind<add>
  } %c, %d, %y : vector<4x2x2x2x2x4xi32>, vector<2x2x2x2x4x4xi32> into vector<2x2x2x2x4xi32>
  return %0 : vector<2x2x2x2x4xi32>
}
