// RUN: %python %S/Inputs/x86_step.py %s --target=avx2 > %t && filecheck %s --input-file=%t

// A contraction of u8 with s16, K groups of four taps as pairs of taps two apart, is two `vpmaddwd` for each vector of the
// result; anything else is left alone, with a reason.

// CHECK-LABEL: func.func @rows_and_vectors(
// CHECK: arith.andi
// CHECK: arith.shrui
// CHECK-COUNT-12: "llvm.x86.avx2.pmadd.wd"
// CHECK-NOT: vector.contract
func.func @rows_and_vectors(%x: memref<3x2x2xi8>, %w: memref<2x2x8x2xi16>, %y: vector<3x2x8xi32>) -> vector<3x2x8xi32> {
  %c0 = arith.constant 0 : index
  %x0 = arith.constant 0 : i8
  %w0 = arith.constant 0 : i16
  %a = vector.transfer_read %x[%c0, %c0, %c0], %x0 {in_bounds = [true, true, true]} : memref<3x2x2xi8>, vector<3x2x2xi8>
  %b = vector.transfer_read %w[%c0, %c0, %c0, %c0], %w0 {in_bounds = [true, true, true, true]} : memref<2x2x8x2xi16>, vector<2x2x8x2xi16>
  %c = arith.extui %a : vector<3x2x2xi8> to vector<3x2x2xi32>
  %d = arith.extsi %b : vector<2x2x8x2xi16> to vector<2x2x8x2xi32>
  %0 = vector.contract {
    indexing_maps = [affine_map<(r, v, l, p, q) -> (r, p, q)>, affine_map<(r, v, l, p, q) -> (v, q, l, p)>,
                     affine_map<(r, v, l, p, q) -> (r, v, l)>],
    iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"], kind = #vector.kind<add>
  } %c, %d, %y : vector<3x2x2xi32>, vector<2x2x8x2xi32> into vector<3x2x8xi32>
  return %0 : vector<3x2x8xi32>
}

// CHECK-LABEL: func.func @turned_result(
// CHECK: vector.extract %{{.*}}[0, 1] : vector<8xi32> from vector<2x3x8xi32>
// CHECK-COUNT-12: "llvm.x86.avx2.pmadd.wd"
// CHECK-NOT: vector.contract
func.func @turned_result(%x: memref<3x2x2xi8>, %w: memref<2x2x8x2xi16>, %y: vector<2x3x8xi32>) -> vector<2x3x8xi32> {
  %c0 = arith.constant 0 : index
  %x0 = arith.constant 0 : i8
  %w0 = arith.constant 0 : i16
  %a = vector.transfer_read %x[%c0, %c0, %c0], %x0 {in_bounds = [true, true, true]} : memref<3x2x2xi8>, vector<3x2x2xi8>
  %b = vector.transfer_read %w[%c0, %c0, %c0, %c0], %w0 {in_bounds = [true, true, true, true]} : memref<2x2x8x2xi16>, vector<2x2x8x2xi16>
  %c = arith.extui %a : vector<3x2x2xi8> to vector<3x2x2xi32>
  %d = arith.extsi %b : vector<2x2x8x2xi16> to vector<2x2x8x2xi32>
  %0 = vector.contract {
    indexing_maps = [affine_map<(r, v, l, p, q) -> (r, p, q)>, affine_map<(r, v, l, p, q) -> (v, q, l, p)>,
                     affine_map<(r, v, l, p, q) -> (v, r, l)>],
    iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"], kind = #vector.kind<add>
  } %c, %d, %y : vector<3x2x2xi32>, vector<2x2x8x2xi32> into vector<2x3x8xi32>
  return %0 : vector<2x3x8xi32>
}

// CHECK-LABEL: func.func @narrow_lanes(
// CHECK-COUNT-2: "llvm.x86.sse2.pmadd.wd"
func.func @narrow_lanes(%x: memref<1x2x2xi8>, %w: memref<1x2x4x2xi16>, %y: vector<1x1x4xi32>) -> vector<1x1x4xi32> {
  %c0 = arith.constant 0 : index
  %x0 = arith.constant 0 : i8
  %w0 = arith.constant 0 : i16
  %a = vector.transfer_read %x[%c0, %c0, %c0], %x0 {in_bounds = [true, true, true]} : memref<1x2x2xi8>, vector<1x2x2xi8>
  %b = vector.transfer_read %w[%c0, %c0, %c0, %c0], %w0 {in_bounds = [true, true, true, true]} : memref<1x2x4x2xi16>, vector<1x2x4x2xi16>
  %c = arith.extui %a : vector<1x2x2xi8> to vector<1x2x2xi32>
  %d = arith.extsi %b : vector<1x2x4x2xi16> to vector<1x2x4x2xi32>
  %0 = vector.contract {
    indexing_maps = [affine_map<(r, v, l, p, q) -> (r, p, q)>, affine_map<(r, v, l, p, q) -> (v, q, l, p)>,
                     affine_map<(r, v, l, p, q) -> (r, v, l)>],
    iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"], kind = #vector.kind<add>
  } %c, %d, %y : vector<1x2x2xi32>, vector<1x2x4x2xi32> into vector<1x1x4xi32>
  return %0 : vector<1x1x4xi32>
}

// CHECK-LABEL: func.func @kind(
// CHECK-NOT: pmadd
// CHECK: vector.contract
func.func @kind(%x: memref<3x2x2xi8>, %w: memref<2x2x8x2xi16>, %y: vector<3x2x8xi32>) -> vector<3x2x8xi32> {
  %c0 = arith.constant 0 : index
  %x0 = arith.constant 0 : i8
  %w0 = arith.constant 0 : i16
  %a = vector.transfer_read %x[%c0, %c0, %c0], %x0 {in_bounds = [true, true, true]} : memref<3x2x2xi8>, vector<3x2x2xi8>
  %b = vector.transfer_read %w[%c0, %c0, %c0, %c0], %w0 {in_bounds = [true, true, true, true]} : memref<2x2x8x2xi16>, vector<2x2x8x2xi16>
  %c = arith.extui %a : vector<3x2x2xi8> to vector<3x2x2xi32>
  %d = arith.extsi %b : vector<2x2x8x2xi16> to vector<2x2x8x2xi32>
  // expected-remark @below {{[widened-dot] 'vector.contract' combining kind must be add, but got maxsi}}
  %0 = vector.contract {
    indexing_maps = [affine_map<(r, v, l, p, q) -> (r, p, q)>, affine_map<(r, v, l, p, q) -> (v, q, l, p)>,
                     affine_map<(r, v, l, p, q) -> (r, v, l)>],
    iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"], kind = #vector.kind<maxsi>
  } %c, %d, %y : vector<3x2x2xi32>, vector<2x2x8x2xi32> into vector<3x2x8xi32>
  return %0 : vector<3x2x8xi32>
}

// CHECK-LABEL: func.func @wide_lanes(
// CHECK-NOT: pmadd
// CHECK: vector.contract
func.func @wide_lanes(%x: memref<3x2x2xi8>, %w: memref<2x2x16x2xi16>, %y: vector<3x2x16xi32>) -> vector<3x2x16xi32> {
  %c0 = arith.constant 0 : index
  %x0 = arith.constant 0 : i8
  %w0 = arith.constant 0 : i16
  %a = vector.transfer_read %x[%c0, %c0, %c0], %x0 {in_bounds = [true, true, true]} : memref<3x2x2xi8>, vector<3x2x2xi8>
  %b = vector.transfer_read %w[%c0, %c0, %c0, %c0], %w0 {in_bounds = [true, true, true, true]} : memref<2x2x16x2xi16>, vector<2x2x16x2xi16>
  %c = arith.extui %a : vector<3x2x2xi8> to vector<3x2x2xi32>
  %d = arith.extsi %b : vector<2x2x16x2xi16> to vector<2x2x16x2xi32>
  // expected-remark @below {{[widened-dot] 'vector.contract' lanes of the result must be one of 4, 8, but got 16}}
  %0 = vector.contract {
    indexing_maps = [affine_map<(r, v, l, p, q) -> (r, p, q)>, affine_map<(r, v, l, p, q) -> (v, q, l, p)>,
                     affine_map<(r, v, l, p, q) -> (r, v, l)>],
    iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"], kind = #vector.kind<add>
  } %c, %d, %y : vector<3x2x2xi32>, vector<2x2x16x2xi32> into vector<3x2x16xi32>
  return %0 : vector<3x2x16xi32>
}

// CHECK-LABEL: func.func @neighbouring_taps(
// CHECK-NOT: pmadd
// CHECK: vector.contract
func.func @neighbouring_taps(%x: memref<3x2x2xi8, strided<[4, 1, 2]>>, %w: memref<2x2x8x2xi16>, %y: vector<3x2x8xi32>) -> vector<3x2x8xi32> {
  %c0 = arith.constant 0 : index
  %x0 = arith.constant 0 : i8
  %w0 = arith.constant 0 : i16
  %a = vector.transfer_read %x[%c0, %c0, %c0], %x0 {in_bounds = [true, true, true]} : memref<3x2x2xi8, strided<[4, 1, 2]>>, vector<3x2x2xi8>
  %b = vector.transfer_read %w[%c0, %c0, %c0, %c0], %w0 {in_bounds = [true, true, true, true]} : memref<2x2x8x2xi16>, vector<2x2x8x2xi16>
  %c = arith.extui %a : vector<3x2x2xi8> to vector<3x2x2xi32>
  %d = arith.extsi %b : vector<2x2x8x2xi16> to vector<2x2x8x2xi32>
  // expected-remark @below {{[widened-dot] 'vector.contract' taps must lie side by side, but got memref<3x2x2xi8, strided<[4, 1, 2]>>}}
  %0 = vector.contract {
    indexing_maps = [affine_map<(r, v, l, p, q) -> (r, p, q)>, affine_map<(r, v, l, p, q) -> (v, q, l, p)>,
                     affine_map<(r, v, l, p, q) -> (r, v, l)>],
    iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"], kind = #vector.kind<add>
  } %c, %d, %y : vector<3x2x2xi32>, vector<2x2x8x2xi32> into vector<3x2x8xi32>
  return %0 : vector<3x2x8xi32>
}

// CHECK-LABEL: func.func @three_pairs(
// CHECK-NOT: pmadd
// CHECK: vector.contract
func.func @three_pairs(%x: memref<3x3x2xi8>, %w: memref<2x2x8x3xi16>, %y: vector<3x2x8xi32>) -> vector<3x2x8xi32> {
  %c0 = arith.constant 0 : index
  %x0 = arith.constant 0 : i8
  %w0 = arith.constant 0 : i16
  %a = vector.transfer_read %x[%c0, %c0, %c0], %x0 {in_bounds = [true, true, true]} : memref<3x3x2xi8>, vector<3x3x2xi8>
  %b = vector.transfer_read %w[%c0, %c0, %c0, %c0], %w0 {in_bounds = [true, true, true, true]} : memref<2x2x8x3xi16>, vector<2x2x8x3xi16>
  %c = arith.extui %a : vector<3x3x2xi8> to vector<3x3x2xi32>
  %d = arith.extsi %b : vector<2x2x8x3xi16> to vector<2x2x8x3xi32>
  // expected-remark @below {{[widened-dot] 'vector.contract' innermost loops of the data must be two reductions of two taps}}
  %0 = vector.contract {
    indexing_maps = [affine_map<(r, v, l, p, q) -> (r, p, q)>, affine_map<(r, v, l, p, q) -> (v, q, l, p)>,
                     affine_map<(r, v, l, p, q) -> (r, v, l)>],
    iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"], kind = #vector.kind<add>
  } %c, %d, %y : vector<3x3x2xi32>, vector<2x2x8x3xi32> into vector<3x2x8xi32>
  return %0 : vector<3x2x8xi32>
}

// CHECK-LABEL: func.func @lanes_in_data(
// CHECK-NOT: pmadd
// CHECK: vector.contract
func.func @lanes_in_data(%x: memref<3x8x2x2xi8>, %w: memref<2x2x8x2xi16>, %y: vector<3x2x8xi32>) -> vector<3x2x8xi32> {
  %c0 = arith.constant 0 : index
  %x0 = arith.constant 0 : i8
  %w0 = arith.constant 0 : i16
  %a = vector.transfer_read %x[%c0, %c0, %c0, %c0], %x0 {in_bounds = [true, true, true, true]} : memref<3x8x2x2xi8>, vector<3x8x2x2xi8>
  %b = vector.transfer_read %w[%c0, %c0, %c0, %c0], %w0 {in_bounds = [true, true, true, true]} : memref<2x2x8x2xi16>, vector<2x2x8x2xi16>
  %c = arith.extui %a : vector<3x8x2x2xi8> to vector<3x8x2x2xi32>
  %d = arith.extsi %b : vector<2x2x8x2xi16> to vector<2x2x8x2xi32>
  // expected-remark @below {{[widened-dot] 'vector.contract' data must be the same in every lane}}
  %0 = vector.contract {
    indexing_maps = [affine_map<(r, v, l, p, q) -> (r, l, p, q)>, affine_map<(r, v, l, p, q) -> (v, q, l, p)>,
                     affine_map<(r, v, l, p, q) -> (r, v, l)>],
    iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"], kind = #vector.kind<add>
  } %c, %d, %y : vector<3x8x2x2xi32>, vector<2x2x8x2xi32> into vector<3x2x8xi32>
  return %0 : vector<3x2x8xi32>
}

// CHECK-LABEL: func.func @taps_in_order(
// CHECK-NOT: pmadd
// CHECK: vector.contract
func.func @taps_in_order(%x: memref<3x2x2xi8>, %w: memref<2x8x2x2xi16>, %y: vector<3x2x8xi32>) -> vector<3x2x8xi32> {
  %c0 = arith.constant 0 : index
  %x0 = arith.constant 0 : i8
  %w0 = arith.constant 0 : i16
  %a = vector.transfer_read %x[%c0, %c0, %c0], %x0 {in_bounds = [true, true, true]} : memref<3x2x2xi8>, vector<3x2x2xi8>
  %b = vector.transfer_read %w[%c0, %c0, %c0, %c0], %w0 {in_bounds = [true, true, true, true]} : memref<2x8x2x2xi16>, vector<2x8x2x2xi16>
  %c = arith.extui %a : vector<3x2x2xi8> to vector<3x2x2xi32>
  %d = arith.extsi %b : vector<2x8x2x2xi16> to vector<2x8x2x2xi32>
  // expected-remark @below {{[widened-dot] 'vector.contract' innermost loops of the weights must be odd taps, lanes and pairs}}
  %0 = vector.contract {
    indexing_maps = [affine_map<(r, v, l, p, q) -> (r, p, q)>, affine_map<(r, v, l, p, q) -> (v, l, p, q)>,
                     affine_map<(r, v, l, p, q) -> (r, v, l)>],
    iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"], kind = #vector.kind<add>
  } %c, %d, %y : vector<3x2x2xi32>, vector<2x8x2x2xi32> into vector<3x2x8xi32>
  return %0 : vector<3x2x8xi32>
}

// CHECK-LABEL: func.func @lanes_apart(
// CHECK-NOT: pmadd
// CHECK: vector.contract
func.func @lanes_apart(%x: memref<3x2x2xi8>, %w: memref<2x2x8x2xi16, strided<[64, 32, 4, 1]>>, %y: vector<3x2x8xi32>) -> vector<3x2x8xi32> {
  %c0 = arith.constant 0 : index
  %x0 = arith.constant 0 : i8
  %w0 = arith.constant 0 : i16
  %a = vector.transfer_read %x[%c0, %c0, %c0], %x0 {in_bounds = [true, true, true]} : memref<3x2x2xi8>, vector<3x2x2xi8>
  %b = vector.transfer_read %w[%c0, %c0, %c0, %c0], %w0 {in_bounds = [true, true, true, true]} : memref<2x2x8x2xi16, strided<[64, 32, 4, 1]>>, vector<2x2x8x2xi16>
  %c = arith.extui %a : vector<3x2x2xi8> to vector<3x2x2xi32>
  %d = arith.extsi %b : vector<2x2x8x2xi16> to vector<2x2x8x2xi32>
  // expected-remark @below {{[widened-dot] 'vector.contract' weights must lie side by side in their buffer, but got memref<2x2x8x2xi16, strided<[64, 32, 4, 1]>>}}
  %0 = vector.contract {
    indexing_maps = [affine_map<(r, v, l, p, q) -> (r, p, q)>, affine_map<(r, v, l, p, q) -> (v, q, l, p)>,
                     affine_map<(r, v, l, p, q) -> (r, v, l)>],
    iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"], kind = #vector.kind<add>
  } %c, %d, %y : vector<3x2x2xi32>, vector<2x2x8x2xi32> into vector<3x2x8xi32>
  return %0 : vector<3x2x8xi32>
}

// CHECK-LABEL: func.func @part_of_lanes(
// CHECK-NOT: pmadd
// CHECK: vector.contract
func.func @part_of_lanes(%x: memref<3x2x2xi8>, %w: memref<2x2x12x2xi16>, %y: vector<3x2x8xi32>) -> vector<3x2x8xi32> {
  %c0 = arith.constant 0 : index
  %x0 = arith.constant 0 : i8
  %w0 = arith.constant 0 : i16
  %a = vector.transfer_read %x[%c0, %c0, %c0], %x0 {in_bounds = [true, true, true]} : memref<3x2x2xi8>, vector<3x2x2xi8>
  %b = vector.transfer_read %w[%c0, %c0, %c0, %c0], %w0 {in_bounds = [true, true, true, true]} : memref<2x2x12x2xi16>, vector<2x2x8x2xi16>
  %c = arith.extui %a : vector<3x2x2xi8> to vector<3x2x2xi32>
  %d = arith.extsi %b : vector<2x2x8x2xi16> to vector<2x2x8x2xi32>
  // expected-remark @below {{[widened-dot] 'vector.contract' weights must lie side by side in their buffer, but got memref<2x2x12x2xi16>}}
  %0 = vector.contract {
    indexing_maps = [affine_map<(r, v, l, p, q) -> (r, p, q)>, affine_map<(r, v, l, p, q) -> (v, q, l, p)>,
                     affine_map<(r, v, l, p, q) -> (r, v, l)>],
    iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"], kind = #vector.kind<add>
  } %c, %d, %y : vector<3x2x2xi32>, vector<2x2x8x2xi32> into vector<3x2x8xi32>
  return %0 : vector<3x2x8xi32>
}
