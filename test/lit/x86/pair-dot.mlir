// RUN: %python %S/Inputs/x86_step.py %s --target=avx512bf16 > %t && filecheck %s --input-file=%t

// Products of the upper and of the lower halves of words, added one after the other, are one instruction where sums are
// known to be normal numbers, as it takes others for zeros.

// CHECK-LABEL: func.func @tile(
// CHECK: vector.broadcast %{{.*}} : vector<i32> to vector<2x16xi32>
// CHECK-COUNT-2: llvm.x86.avx512bf16.dpbf16ps.512
// CHECK-NOT: math.fma
func.func @tile(%x: vector<i32>, %w: vector<2x16xi32>, %sums: vector<2x16xf32>) -> vector<2x16xf32> {
  %mask = arith.constant dense<-65536> : vector<i32>
  %masks = arith.constant dense<-65536> : vector<2x16xi32>
  %place = arith.constant dense<16> : vector<i32>
  %places = arith.constant dense<16> : vector<2x16xi32>
  %0 = arith.andi %x, %mask : vector<i32>
  %1 = arith.bitcast %0 : vector<i32> to vector<f32>
  %2 = vector.broadcast %1 : vector<f32> to vector<2x16xf32>
  %3 = arith.andi %w, %masks : vector<2x16xi32>
  %4 = arith.bitcast %3 : vector<2x16xi32> to vector<2x16xf32>
  %5 = math.fma %2, %4, %sums : vector<2x16xf32>
  %6 = arith.shli %x, %place : vector<i32>
  %7 = arith.bitcast %6 : vector<i32> to vector<f32>
  %8 = vector.broadcast %7 : vector<f32> to vector<2x16xf32>
  %9 = arith.shli %w, %places : vector<2x16xi32>
  %10 = arith.bitcast %9 : vector<2x16xi32> to vector<2x16xf32>
  %11 = math.fma %8, %10, %5 {qnn.normal_sums} : vector<2x16xf32>
  return %11 : vector<2x16xf32>
}

// CHECK-LABEL: func.func @unknown_sums(
// CHECK-COUNT-2: math.fma
func.func @unknown_sums(%x: vector<16xi32>, %w: vector<16xi32>, %sums: vector<16xf32>) -> vector<16xf32> {
  %mask = arith.constant dense<-65536> : vector<16xi32>
  %place = arith.constant dense<16> : vector<16xi32>
  %0 = arith.andi %x, %mask : vector<16xi32>
  %1 = arith.bitcast %0 : vector<16xi32> to vector<16xf32>
  %2 = arith.andi %w, %mask : vector<16xi32>
  %3 = arith.bitcast %2 : vector<16xi32> to vector<16xf32>
  %4 = math.fma %1, %3, %sums : vector<16xf32>
  %5 = arith.shli %x, %place : vector<16xi32>
  %6 = arith.bitcast %5 : vector<16xi32> to vector<16xf32>
  %7 = arith.shli %w, %place : vector<16xi32>
  %8 = arith.bitcast %7 : vector<16xi32> to vector<16xf32>
  %9 = math.fma %6, %8, %4 : vector<16xf32>
  return %9 : vector<16xf32>
}

// The other order of sums.

// CHECK-LABEL: func.func @lower_first(
// CHECK-COUNT-2: math.fma
func.func @lower_first(%x: vector<16xi32>, %w: vector<16xi32>, %sums: vector<16xf32>) -> vector<16xf32> {
  %mask = arith.constant dense<-65536> : vector<16xi32>
  %place = arith.constant dense<16> : vector<16xi32>
  %0 = arith.shli %x, %place : vector<16xi32>
  %1 = arith.bitcast %0 : vector<16xi32> to vector<16xf32>
  %2 = arith.shli %w, %place : vector<16xi32>
  %3 = arith.bitcast %2 : vector<16xi32> to vector<16xf32>
  %4 = math.fma %1, %3, %sums : vector<16xf32>
  %5 = arith.andi %x, %mask : vector<16xi32>
  %6 = arith.bitcast %5 : vector<16xi32> to vector<16xf32>
  %7 = arith.andi %w, %mask : vector<16xi32>
  %8 = arith.bitcast %7 : vector<16xi32> to vector<16xf32>
  // expected-remark @below {{[pair-dot] 'math.fma' factors must be the lower halves of words, and those of the addend the upper ones}}
  %9 = math.fma %6, %8, %4 {qnn.normal_sums} : vector<16xf32>
  return %9 : vector<16xf32>
}

// CHECK-LABEL: func.func @short(
// CHECK: math.fma
func.func @short(%x: vector<4xf32>, %w: vector<4xf32>, %sums: vector<4xf32>) -> vector<4xf32> {
  // expected-remark @below {{[pair-dot] 'math.fma' lanes must be one of 16, but got 4}}
  %0 = math.fma %x, %w, %sums {qnn.normal_sums} : vector<4xf32>
  return %0 : vector<4xf32>
}
