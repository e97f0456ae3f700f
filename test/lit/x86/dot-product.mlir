// RUN: %python %S/Inputs/x86_step.py %s > %t && filecheck %s --input-file=%t

// A contraction of u8 with s8 along four taps is one `vpdpbusd` for each vector of the result, whatever the order of its
// maps; anything else is left alone, with a reason.

// CHECK-LABEL: func.func @rows_and_vectors(
// CHECK-COUNT-6: "llvm.x86.avx512.vpdpbusd.512"
// CHECK-NOT: vector.contract
func.func @rows_and_vectors(%x: memref<3x4xi8>, %w: memref<2x16x4xi8>, %y: vector<3x2x16xi32>) -> vector<3x2x16xi32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0 : i8
  %a = vector.transfer_read %x[%c0, %c0], %zero {in_bounds = [true, true]} : memref<3x4xi8>, vector<3x4xi8>
  %b = vector.transfer_read %w[%c0, %c0, %c0], %zero {in_bounds = [true, true, true]} : memref<2x16x4xi8>, vector<2x16x4xi8>
  %c = arith.extui %a : vector<3x4xi8> to vector<3x4xi32>
  %d = arith.extsi %b : vector<2x16x4xi8> to vector<2x16x4xi32>
  %0 = vector.contract {
    indexing_maps = [affine_map<(r, v, l, t) -> (r, t)>, affine_map<(r, v, l, t) -> (v, l, t)>,
                     affine_map<(r, v, l, t) -> (r, v, l)>],
    iterator_types = ["parallel", "parallel", "parallel", "reduction"], kind = #vector.kind<add>
  } %c, %d, %y : vector<3x4xi32>, vector<2x16x4xi32> into vector<3x2x16xi32>
  return %0 : vector<3x2x16xi32>
}

// CHECK-LABEL: func.func @turned_result(
// CHECK: %[[ROW0:.*]] = vector.bitcast %{{.*}} : vector<16xi32> to vector<64xi8>
// CHECK: %[[OWN:.*]] = vector.extract %{{.*}}[0, 1] : vector<16xi32> from vector<2x3x16xi32>
// CHECK-COUNT-5: "llvm.x86.avx512.vpdpbusd.512"
// CHECK-NOT: vector.contract
func.func @turned_result(%x: memref<3x4xi8>, %w: memref<2x16x4xi8>, %y: vector<2x3x16xi32>) -> vector<2x3x16xi32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0 : i8
  %a = vector.transfer_read %x[%c0, %c0], %zero {in_bounds = [true, true]} : memref<3x4xi8>, vector<3x4xi8>
  %b = vector.transfer_read %w[%c0, %c0, %c0], %zero {in_bounds = [true, true, true]} : memref<2x16x4xi8>, vector<2x16x4xi8>
  %c = arith.extui %a : vector<3x4xi8> to vector<3x4xi32>
  %d = arith.extsi %b : vector<2x16x4xi8> to vector<2x16x4xi32>
  %0 = vector.contract {
    indexing_maps = [affine_map<(r, v, l, t) -> (r, t)>, affine_map<(r, v, l, t) -> (v, l, t)>,
                     affine_map<(r, v, l, t) -> (v, r, l)>],
    iterator_types = ["parallel", "parallel", "parallel", "reduction"], kind = #vector.kind<add>
  } %c, %d, %y : vector<3x4xi32>, vector<2x16x4xi32> into vector<2x3x16xi32>
  return %0 : vector<2x3x16xi32>
}

// CHECK-LABEL: func.func @lanes_of_both(
// CHECK-COUNT-3: "llvm.x86.avx512.vpdpbusd.128"
// CHECK-NOT: vector.contract
func.func @lanes_of_both(%x: memref<3x4x4xi8>, %w: memref<1x4x4xi8>, %y: vector<3x1x4xi32>) -> vector<3x1x4xi32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0 : i8
  %a = vector.transfer_read %x[%c0, %c0, %c0], %zero {in_bounds = [true, true, true]} : memref<3x4x4xi8>, vector<3x4x4xi8>
  %b = vector.transfer_read %w[%c0, %c0, %c0], %zero {in_bounds = [true, true, true]} : memref<1x4x4xi8>, vector<1x4x4xi8>
  %c = arith.extui %a : vector<3x4x4xi8> to vector<3x4x4xi32>
  %d = arith.extsi %b : vector<1x4x4xi8> to vector<1x4x4xi32>
  %0 = vector.contract {
    indexing_maps = [affine_map<(r, v, l, t) -> (r, l, t)>, affine_map<(r, v, l, t) -> (v, l, t)>,
                     affine_map<(r, v, l, t) -> (r, v, l)>],
    iterator_types = ["parallel", "parallel", "parallel", "reduction"], kind = #vector.kind<add>
  } %c, %d, %y : vector<3x4x4xi32>, vector<1x4x4xi32> into vector<3x1x4xi32>
  return %0 : vector<3x1x4xi32>
}

// CHECK-LABEL: func.func @kind(
// CHECK-NOT: vpdpbusd
// CHECK: vector.contract
func.func @kind(%x: memref<3x4xi8>, %w: memref<2x16x4xi8>, %y: vector<3x2x16xi32>) -> vector<3x2x16xi32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0 : i8
  %a = vector.transfer_read %x[%c0, %c0], %zero {in_bounds = [true, true]} : memref<3x4xi8>, vector<3x4xi8>
  %b = vector.transfer_read %w[%c0, %c0, %c0], %zero {in_bounds = [true, true, true]} : memref<2x16x4xi8>, vector<2x16x4xi8>
  %c = arith.extui %a : vector<3x4xi8> to vector<3x4xi32>
  %d = arith.extsi %b : vector<2x16x4xi8> to vector<2x16x4xi32>
  // expected-remark @below {{[dot-product] 'vector.contract' combining kind must be add, but got maxsi}}
  // expected-remark @below {{[interleaved-dot] 'vector.contract' combining kind must be add}}
  %0 = vector.contract {
    indexing_maps = [affine_map<(r, v, l, t) -> (r, t)>, affine_map<(r, v, l, t) -> (v, l, t)>,
                     affine_map<(r, v, l, t) -> (r, v, l)>],
    iterator_types = ["parallel", "parallel", "parallel", "reduction"], kind = #vector.kind<maxsi>
  } %c, %d, %y : vector<3x4xi32>, vector<2x16x4xi32> into vector<3x2x16xi32>
  return %0 : vector<3x2x16xi32>
}

// CHECK-LABEL: func.func @three_taps(
// CHECK-NOT: vpdpbusd
// CHECK: vector.contract
func.func @three_taps(%x: memref<3x3xi8>, %w: memref<2x16x3xi8>, %y: vector<3x2x16xi32>) -> vector<3x2x16xi32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0 : i8
  %a = vector.transfer_read %x[%c0, %c0], %zero {in_bounds = [true, true]} : memref<3x3xi8>, vector<3x3xi8>
  %b = vector.transfer_read %w[%c0, %c0, %c0], %zero {in_bounds = [true, true, true]} : memref<2x16x3xi8>, vector<2x16x3xi8>
  %c = arith.extui %a : vector<3x3xi8> to vector<3x3xi32>
  %d = arith.extsi %b : vector<2x16x3xi8> to vector<2x16x3xi32>
  // expected-remark @below {{[dot-product] 'vector.contract' innermost reduction must have 4 taps, but got 3}}
  // expected-remark @below {{[interleaved-dot] 'vector.contract' result must be tiles of}}
  %0 = vector.contract {
    indexing_maps = [affine_map<(r, v, l, t) -> (r, t)>, affine_map<(r, v, l, t) -> (v, l, t)>,
                     affine_map<(r, v, l, t) -> (r, v, l)>],
    iterator_types = ["parallel", "parallel", "parallel", "reduction"], kind = #vector.kind<add>
  } %c, %d, %y : vector<3x3xi32>, vector<2x16x3xi32> into vector<3x2x16xi32>
  return %0 : vector<3x2x16xi32>
}

// CHECK-LABEL: func.func @five_lanes(
// CHECK-NOT: vpdpbusd
// CHECK: vector.contract
func.func @five_lanes(%x: memref<3x4xi8>, %w: memref<2x5x4xi8>, %y: vector<3x2x5xi32>) -> vector<3x2x5xi32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0 : i8
  %a = vector.transfer_read %x[%c0, %c0], %zero {in_bounds = [true, true]} : memref<3x4xi8>, vector<3x4xi8>
  %b = vector.transfer_read %w[%c0, %c0, %c0], %zero {in_bounds = [true, true, true]} : memref<2x5x4xi8>, vector<2x5x4xi8>
  %c = arith.extui %a : vector<3x4xi8> to vector<3x4xi32>
  %d = arith.extsi %b : vector<2x5x4xi8> to vector<2x5x4xi32>
  // expected-remark @below {{[dot-product] 'vector.contract' result must have 4, 8 or 16 lanes innermost, but got 5}}
  // expected-remark @below {{[interleaved-dot] 'vector.contract' result must be tiles of}}
  %0 = vector.contract {
    indexing_maps = [affine_map<(r, v, l, t) -> (r, t)>, affine_map<(r, v, l, t) -> (v, l, t)>,
                     affine_map<(r, v, l, t) -> (r, v, l)>],
    iterator_types = ["parallel", "parallel", "parallel", "reduction"], kind = #vector.kind<add>
  } %c, %d, %y : vector<3x4xi32>, vector<2x5x4xi32> into vector<3x2x5xi32>
  return %0 : vector<3x2x5xi32>
}

// CHECK-LABEL: func.func @taps_outside(
// CHECK-NOT: vpdpbusd
// CHECK: vector.contract
func.func @taps_outside(%x: memref<4x3xi8>, %w: memref<2x16x4xi8>, %y: vector<3x2x16xi32>) -> vector<3x2x16xi32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0 : i8
  %a = vector.transfer_read %x[%c0, %c0], %zero {in_bounds = [true, true]} : memref<4x3xi8>, vector<4x3xi8>
  %b = vector.transfer_read %w[%c0, %c0, %c0], %zero {in_bounds = [true, true, true]} : memref<2x16x4xi8>, vector<2x16x4xi8>
  %c = arith.extui %a : vector<4x3xi8> to vector<4x3xi32>
  %d = arith.extsi %b : vector<2x16x4xi8> to vector<2x16x4xi32>
  // expected-remark @below {{[dot-product] 'vector.contract' innermost loop of both factors must be one reduction}}
  // expected-remark @below {{[interleaved-dot] 'vector.contract' result must be tiles of}}
  %0 = vector.contract {
    indexing_maps = [affine_map<(r, v, l, t) -> (t, r)>, affine_map<(r, v, l, t) -> (v, l, t)>,
                     affine_map<(r, v, l, t) -> (r, v, l)>],
    iterator_types = ["parallel", "parallel", "parallel", "reduction"], kind = #vector.kind<add>
  } %c, %d, %y : vector<4x3xi32>, vector<2x16x4xi32> into vector<3x2x16xi32>
  return %0 : vector<3x2x16xi32>
}

// CHECK-LABEL: func.func @lanes_outside(
// CHECK-NOT: vpdpbusd
// CHECK: vector.contract
func.func @lanes_outside(%x: memref<3x4xi8>, %w: memref<16x2x4xi8>, %y: vector<3x2x16xi32>) -> vector<3x2x16xi32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0 : i8
  %a = vector.transfer_read %x[%c0, %c0], %zero {in_bounds = [true, true]} : memref<3x4xi8>, vector<3x4xi8>
  %b = vector.transfer_read %w[%c0, %c0, %c0], %zero {in_bounds = [true, true, true]} : memref<16x2x4xi8>, vector<16x2x4xi8>
  %c = arith.extui %a : vector<3x4xi8> to vector<3x4xi32>
  %d = arith.extsi %b : vector<16x2x4xi8> to vector<16x2x4xi32>
  // expected-remark @below {{[dot-product] 'vector.contract' lanes must be the loop around the taps}}
  // expected-remark @below {{[interleaved-dot] 'vector.contract' result must be tiles of}}
  %0 = vector.contract {
    indexing_maps = [affine_map<(r, v, l, t) -> (r, t)>, affine_map<(r, v, l, t) -> (l, v, t)>,
                     affine_map<(r, v, l, t) -> (r, v, l)>],
    iterator_types = ["parallel", "parallel", "parallel", "reduction"], kind = #vector.kind<add>
  } %c, %d, %y : vector<3x4xi32>, vector<16x2x4xi32> into vector<3x2x16xi32>
  return %0 : vector<3x2x16xi32>
}

// CHECK-LABEL: func.func @out_of_bounds(
// CHECK-NOT: vpdpbusd
// CHECK: vector.contract
func.func @out_of_bounds(%x: memref<2x4xi8>, %w: memref<2x16x4xi8>, %y: vector<3x2x16xi32>) -> vector<3x2x16xi32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0 : i8
  %a = vector.transfer_read %x[%c0, %c0], %zero {in_bounds = [false, true]} : memref<2x4xi8>, vector<3x4xi8>
  %b = vector.transfer_read %w[%c0, %c0, %c0], %zero {in_bounds = [true, true, true]} : memref<2x16x4xi8>, vector<2x16x4xi8>
  %c = arith.extui %a : vector<3x4xi8> to vector<3x4xi32>
  %d = arith.extsi %b : vector<2x16x4xi8> to vector<2x16x4xi32>
  // expected-remark @below {{[dot-product] 'vector.contract' data must be accessed in bounds}}
  // expected-remark @below {{[interleaved-dot] 'vector.contract' data must be accessed in bounds}}
  %0 = vector.contract {
    indexing_maps = [affine_map<(r, v, l, t) -> (r, t)>, affine_map<(r, v, l, t) -> (v, l, t)>,
                     affine_map<(r, v, l, t) -> (r, v, l)>],
    iterator_types = ["parallel", "parallel", "parallel", "reduction"], kind = #vector.kind<add>
  } %c, %d, %y : vector<3x4xi32>, vector<2x16x4xi32> into vector<3x2x16xi32>
  return %0 : vector<3x2x16xi32>
}

// CHECK-LABEL: func.func @turned_read(
// CHECK-NOT: vpdpbusd
// CHECK: vector.contract
func.func @turned_read(%x: memref<4x3xi8>, %w: memref<2x16x4xi8>, %y: vector<3x2x16xi32>) -> vector<3x2x16xi32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0 : i8
  %a = vector.transfer_read %x[%c0, %c0], %zero {in_bounds = [true, true], permutation_map = affine_map<(d0, d1) -> (d1, d0)>} : memref<4x3xi8>, vector<3x4xi8>
  %b = vector.transfer_read %w[%c0, %c0, %c0], %zero {in_bounds = [true, true, true]} : memref<2x16x4xi8>, vector<2x16x4xi8>
  %c = arith.extui %a : vector<3x4xi8> to vector<3x4xi32>
  %d = arith.extsi %b : vector<2x16x4xi8> to vector<2x16x4xi32>
  // expected-remark @below {{[dot-product] 'vector.contract' data must be accessed in the order of memory, but got (d0, d1) -> (d1, d0)}}
  // expected-remark @below {{[interleaved-dot] 'vector.contract' data must be accessed in the order of memory}}
  %0 = vector.contract {
    indexing_maps = [affine_map<(r, v, l, t) -> (r, t)>, affine_map<(r, v, l, t) -> (v, l, t)>,
                     affine_map<(r, v, l, t) -> (r, v, l)>],
    iterator_types = ["parallel", "parallel", "parallel", "reduction"], kind = #vector.kind<add>
  } %c, %d, %y : vector<3x4xi32>, vector<2x16x4xi32> into vector<3x2x16xi32>
  return %0 : vector<3x2x16xi32>
}

// CHECK-LABEL: func.func @apart(
// CHECK-NOT: vpdpbusd
// CHECK: vector.contract
func.func @apart(%x: memref<3x4xi8>, %w: memref<2x16x5xi8>, %y: vector<3x2x16xi32>) -> vector<3x2x16xi32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0 : i8
  %a = vector.transfer_read %x[%c0, %c0], %zero {in_bounds = [true, true]} : memref<3x4xi8>, vector<3x4xi8>
  %b = vector.transfer_read %w[%c0, %c0, %c0], %zero {in_bounds = [true, true, true]} : memref<2x16x5xi8>, vector<2x16x4xi8>
  %c = arith.extui %a : vector<3x4xi8> to vector<3x4xi32>
  %d = arith.extsi %b : vector<2x16x4xi8> to vector<2x16x4xi32>
  // expected-remark @below {{[dot-product] 'vector.contract' lanes must lie side by side in their buffer, but got memref<2x16x5xi8>}}
  // expected-remark @below {{[interleaved-dot] 'vector.contract' result must be tiles of}}
  %0 = vector.contract {
    indexing_maps = [affine_map<(r, v, l, t) -> (r, t)>, affine_map<(r, v, l, t) -> (v, l, t)>,
                     affine_map<(r, v, l, t) -> (r, v, l)>],
    iterator_types = ["parallel", "parallel", "parallel", "reduction"], kind = #vector.kind<add>
  } %c, %d, %y : vector<3x4xi32>, vector<2x16x4xi32> into vector<3x2x16xi32>
  return %0 : vector<3x2x16xi32>
}

// CHECK-LABEL: func.func @part_of_the_lanes(
// CHECK-NOT: vpdpbusd
// CHECK: vector.contract
func.func @part_of_the_lanes(%x: memref<3x4xi8>, %w: memref<2x32x4xi8>, %y: vector<3x2x16xi32>) -> vector<3x2x16xi32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0 : i8
  %a = vector.transfer_read %x[%c0, %c0], %zero {in_bounds = [true, true]} : memref<3x4xi8>, vector<3x4xi8>
  %b = vector.transfer_read %w[%c0, %c0, %c0], %zero {in_bounds = [true, true, true]} : memref<2x32x4xi8>, vector<2x16x4xi8>
  %c = arith.extui %a : vector<3x4xi8> to vector<3x4xi32>
  %d = arith.extsi %b : vector<2x16x4xi8> to vector<2x16x4xi32>
  // expected-remark @below {{[dot-product] 'vector.contract' lanes must lie side by side in their buffer, but got memref<2x32x4xi8>}}
  // expected-remark @below {{[interleaved-dot] 'vector.contract' result must be tiles of}}
  %0 = vector.contract {
    indexing_maps = [affine_map<(r, v, l, t) -> (r, t)>, affine_map<(r, v, l, t) -> (v, l, t)>,
                     affine_map<(r, v, l, t) -> (r, v, l)>],
    iterator_types = ["parallel", "parallel", "parallel", "reduction"], kind = #vector.kind<add>
  } %c, %d, %y : vector<3x4xi32>, vector<2x16x4xi32> into vector<3x2x16xi32>
  return %0 : vector<3x2x16xi32>
}

// CHECK-LABEL: func.func @run_time_strides(
// CHECK-NOT: vpdpbusd
// CHECK: vector.contract
func.func @run_time_strides(%x: memref<3x4xi8>, %w: memref<2x16x4xi8, strided<[?, 4, 1]>>, %y: vector<3x2x16xi32>) -> vector<3x2x16xi32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0 : i8
  %a = vector.transfer_read %x[%c0, %c0], %zero {in_bounds = [true, true]} : memref<3x4xi8>, vector<3x4xi8>
  %b = vector.transfer_read %w[%c0, %c0, %c0], %zero {in_bounds = [true, true, true]} : memref<2x16x4xi8, strided<[?, 4, 1]>>, vector<2x16x4xi8>
  %c = arith.extui %a : vector<3x4xi8> to vector<3x4xi32>
  %d = arith.extsi %b : vector<2x16x4xi8> to vector<2x16x4xi32>
  // expected-remark @below {{[dot-product] 'vector.contract' weights must be in the default memory space at static strides}}
  // expected-remark @below {{[interleaved-dot] 'vector.contract' weights must be in the default memory space}}
  %0 = vector.contract {
    indexing_maps = [affine_map<(r, v, l, t) -> (r, t)>, affine_map<(r, v, l, t) -> (v, l, t)>,
                     affine_map<(r, v, l, t) -> (r, v, l)>],
    iterator_types = ["parallel", "parallel", "parallel", "reduction"], kind = #vector.kind<add>
  } %c, %d, %y : vector<3x4xi32>, vector<2x16x4xi32> into vector<3x2x16xi32>
  return %0 : vector<3x2x16xi32>
}

// CHECK-LABEL: func.func @strided_taps(
// CHECK-NOT: vpdpbusd
// CHECK: vector.contract
func.func @strided_taps(%x: memref<3x4xi8, strided<[8, 2]>>, %w: memref<2x16x4xi8>, %y: vector<3x2x16xi32>) -> vector<3x2x16xi32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0 : i8
  %a = vector.transfer_read %x[%c0, %c0], %zero {in_bounds = [true, true]} : memref<3x4xi8, strided<[8, 2]>>, vector<3x4xi8>
  %b = vector.transfer_read %w[%c0, %c0, %c0], %zero {in_bounds = [true, true, true]} : memref<2x16x4xi8>, vector<2x16x4xi8>
  %c = arith.extui %a : vector<3x4xi8> to vector<3x4xi32>
  %d = arith.extsi %b : vector<2x16x4xi8> to vector<2x16x4xi32>
  // expected-remark @below {{[dot-product] 'vector.contract' taps must lie side by side}}
  // expected-remark @below {{[interleaved-dot] 'vector.contract' result must be tiles of}}
  %0 = vector.contract {
    indexing_maps = [affine_map<(r, v, l, t) -> (r, t)>, affine_map<(r, v, l, t) -> (v, l, t)>,
                     affine_map<(r, v, l, t) -> (r, v, l)>],
    iterator_types = ["parallel", "parallel", "parallel", "reduction"], kind = #vector.kind<add>
  } %c, %d, %y : vector<3x4xi32>, vector<2x16x4xi32> into vector<3x2x16xi32>
  return %0 : vector<3x2x16xi32>
}

// CHECK-LABEL: func.func @written_between(
// CHECK: %[[DATA:.*]] = vector.load %arg0{{.*}} vector<4xi8>
// CHECK: memref.store
// CHECK: "llvm.x86.avx512.vpdpbusd.512"
func.func @written_between(%x: memref<4xi8>, %w: memref<16x4xi8>, %y: vector<16xi32>) -> vector<16xi32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0 : i8
  %a = vector.transfer_read %x[%c0], %zero {in_bounds = [true]} : memref<4xi8>, vector<4xi8>
  memref.store %zero, %x[%c0] : memref<4xi8>
  %b = vector.transfer_read %w[%c0, %c0], %zero {in_bounds = [true, true]} : memref<16x4xi8>, vector<16x4xi8>
  %c = arith.extui %a : vector<4xi8> to vector<4xi32>
  %d = arith.extsi %b : vector<16x4xi8> to vector<16x4xi32>
  %0 = vector.contract {
    indexing_maps = [affine_map<(l, t) -> (t)>, affine_map<(l, t) -> (l, t)>, affine_map<(l, t) -> (l)>],
    iterator_types = ["parallel", "reduction"], kind = #vector.kind<add>
  } %c, %d, %y : vector<4xi32>, vector<16x4xi32> into vector<16xi32>
  return %0 : vector<16xi32>
}

// CHECK-LABEL: func.func @not_from_memory(
// CHECK-NOT: vpdpbusd
// CHECK: vector.contract
func.func @not_from_memory(%a: vector<4xi8>, %b: vector<16x4xi8>, %y: vector<16xi32>) -> vector<16xi32> {
  %c = arith.extui %a : vector<4xi8> to vector<4xi32>
  %d = arith.extsi %b : vector<16x4xi8> to vector<16x4xi32>
  // expected-remark @below {{[dot-product] 'vector.contract' data must be read from memory}}
  // expected-remark @below {{[interleaved-dot] 'vector.contract' data must be read from memory}}
  %0 = vector.contract {
    indexing_maps = [affine_map<(l, t) -> (t)>, affine_map<(l, t) -> (l, t)>, affine_map<(l, t) -> (l)>],
    iterator_types = ["parallel", "reduction"], kind = #vector.kind<add>
  } %c, %d, %y : vector<4xi32>, vector<16x4xi32> into vector<16xi32>
  return %0 : vector<16xi32>
}
