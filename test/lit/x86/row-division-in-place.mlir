// RUN: %python %S/Inputs/x86_step.py %s --target=znver4 > %t && filecheck %s --input-file=%t

// Where the divider is not much slower than products, a row is divided by these in the place where it lies.

// CHECK-LABEL: func.func @in_place(
// CHECK: scf.if
// CHECK: math.fma
func.func @in_place(%x: memref<64xf32>, %by: memref<1xf32>) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  scf.for %j = %c0 to %c64 step %c16 {
    %d = vector.transfer_read %by[%c0], %zero {in_bounds = [true]} : memref<1xf32>, vector<1xf32>
    %b = vector.broadcast %d : vector<1xf32> to vector<16xf32>
    %a = vector.transfer_read %x[%j], %zero {in_bounds = [true]} : memref<64xf32>, vector<16xf32>
    %q = arith.divf %a, %b : vector<16xf32>
    vector.transfer_write %q, %x[%j] {in_bounds = [true]} : vector<16xf32>, memref<64xf32>
  }
  return
}

// CHECK-LABEL: func.func @elsewhere(
// CHECK-NOT: scf.if
// CHECK: arith.divf
func.func @elsewhere(%x: memref<64xf32>, %by: memref<1xf32>, %y: memref<64xf32>) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  scf.for %j = %c0 to %c64 step %c16 {
    %d = vector.transfer_read %by[%c0], %zero {in_bounds = [true]} : memref<1xf32>, vector<1xf32>
    %b = vector.broadcast %d : vector<1xf32> to vector<16xf32>
    %a = vector.transfer_read %x[%j], %zero {in_bounds = [true]} : memref<64xf32>, vector<16xf32>
    // expected-remark @below {{[row-division] 'arith.divf' must be of numbers that its loop writes where it reads them}}
    %q = arith.divf %a, %b : vector<16xf32>
    vector.transfer_write %q, %y[%j] {in_bounds = [true]} : vector<16xf32>, memref<64xf32>
  }
  return
}
