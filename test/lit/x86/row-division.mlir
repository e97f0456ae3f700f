// RUN: %python %S/Inputs/x86_step.py %s --target=amxint8 > %t && filecheck %s --input-file=%t

// A row divided by one number is multiplied by its reciprocal and corrected, where all numbers are in range.

// CHECK-LABEL: func.func @row(
// CHECK: scf.for
// CHECK: %[[DIVISOR:.*]] = vector.broadcast %{{.*}} : vector<1xf32> to vector<1x16xf32>
// CHECK: %[[RECIPROCAL:.*]] = arith.divf %{{.*}}, %[[DIVISOR]] : vector<1x16xf32>
// CHECK: scf.for
// CHECK: %[[A:.*]] = vector.transfer_read {{.*}} vector<1x16xf32>
// CHECK: %[[RESULT:.*]] = scf.if %{{.*}} -> (vector<1x16xf32>) {
// CHECK: %[[Q:.*]] = arith.mulf %[[A]], %[[RECIPROCAL]]
// CHECK: %[[MINUS:.*]] = arith.negf %[[A]]
// CHECK: %[[R:.*]] = math.fma %[[DIVISOR]], %[[Q]], %[[MINUS]]
// CHECK: %[[LESS:.*]] = arith.negf %[[R]]
// CHECK: %[[SUM:.*]] = math.fma %[[LESS]], %[[RECIPROCAL]], %[[Q]]
// CHECK: scf.yield %[[SUM]]
// CHECK: } else {
// CHECK: %[[DIVIDED:.*]] = arith.divf %[[A]], %[[DIVISOR]]
// CHECK: scf.yield %[[DIVIDED]]
// CHECK: vector.transfer_write %[[RESULT]]
func.func @row(%x: memref<4x64xf32>, %by: memref<4xf32>, %y: memref<4x64xf32>) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  scf.for %i = %c0 to %c4 step %c1 {
    scf.for %j = %c0 to %c64 step %c16 {
      %d = vector.transfer_read %by[%i], %zero {in_bounds = [true]} : memref<4xf32>, vector<1xf32>
      %b = vector.broadcast %d : vector<1xf32> to vector<1x16xf32>
      %a = vector.transfer_read %x[%i, %j], %zero {in_bounds = [true, true]} : memref<4x64xf32>, vector<1x16xf32>
      %q = arith.divf %a, %b : vector<1x16xf32>
      vector.transfer_write %q, %y[%i, %j] {in_bounds = [true, true]} : vector<1x16xf32>, memref<4x64xf32>
    }
  }
  return
}

// CHECK-LABEL: func.func @divisor_of_each_iteration(
// CHECK-NOT: scf.if
// CHECK: arith.divf
func.func @divisor_of_each_iteration(%x: memref<64x16xf32>, %by: memref<64xf32>, %y: memref<64x16xf32>) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  scf.for %i = %c0 to %c64 step %c1 {
    %d = vector.transfer_read %by[%i], %zero {in_bounds = [true]} : memref<64xf32>, vector<1xf32>
    %b = vector.broadcast %d : vector<1xf32> to vector<1x16xf32>
    %a = vector.transfer_read %x[%i, %c0], %zero {in_bounds = [true, true]} : memref<64x16xf32>, vector<1x16xf32>
    // expected-remark @below {{[row-division] 'arith.divf' must have a divisor that its loop does not change}}
    %q = arith.divf %a, %b : vector<1x16xf32>
    vector.transfer_write %q, %y[%i, %c0] {in_bounds = [true, true]} : vector<1x16xf32>, memref<64x16xf32>
  }
  return
}

// CHECK-LABEL: func.func @written_divisor(
// CHECK-NOT: scf.if
// CHECK: arith.divf
func.func @written_divisor(%x: memref<64xf32>) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %view = memref.reinterpret_cast %x to offset: [3], sizes: [1], strides: [1] : memref<64xf32> to memref<1xf32, strided<[1], offset: 3>>
  scf.for %j = %c0 to %c64 step %c16 {
    %d = vector.transfer_read %view[%c0], %zero {in_bounds = [true]} : memref<1xf32, strided<[1], offset: 3>>, vector<1xf32>
    %b = vector.broadcast %d : vector<1xf32> to vector<16xf32>
    %a = vector.transfer_read %x[%j], %zero {in_bounds = [true]} : memref<64xf32>, vector<16xf32>
    // expected-remark @below {{[row-division] 'arith.divf' must not be in a loop that writes where the divisor is read}}
    %q = arith.divf %a, %b : vector<16xf32>
    vector.transfer_write %q, %x[%j] {in_bounds = [true]} : vector<16xf32>, memref<64xf32>
  }
  return
}

// CHECK-LABEL: func.func @divisor_written_in_a_nested_loop(
// CHECK-NOT: scf.if
// CHECK: arith.divf
func.func @divisor_written_in_a_nested_loop(%x: memref<64xf32>, %by: memref<1xf32>, %y: memref<64xf32>) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  scf.for %j = %c0 to %c64 step %c16 {
    %d = vector.transfer_read %by[%c0], %zero {in_bounds = [true]} : memref<1xf32>, vector<1xf32>
    %b = vector.broadcast %d : vector<1xf32> to vector<16xf32>
    %a = vector.transfer_read %x[%j], %zero {in_bounds = [true]} : memref<64xf32>, vector<16xf32>
    // expected-remark @below {{[row-division] 'arith.divf' must not be in a loop that writes where the divisor is read}}
    %q = arith.divf %a, %b : vector<16xf32>
    vector.transfer_write %q, %y[%j] {in_bounds = [true]} : vector<16xf32>, memref<64xf32>
    scf.for %k = %c0 to %c1 step %c1 {
      memref.store %zero, %by[%k] : memref<1xf32>
    }
  }
  return
}

// CHECK-LABEL: func.func @written_under_a_mask(
// CHECK-NOT: scf.if
// CHECK: arith.divf
func.func @written_under_a_mask(%x: memref<64xf32>, %by: memref<64xf32>, %mask: vector<16xi1>) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  scf.for %j = %c0 to %c64 step %c16 {
    %d = vector.transfer_read %by[%c0], %zero {in_bounds = [true]} : memref<64xf32>, vector<1xf32>
    %b = vector.broadcast %d : vector<1xf32> to vector<16xf32>
    %a = vector.transfer_read %x[%j], %zero {in_bounds = [true]} : memref<64xf32>, vector<16xf32>
    // expected-remark @below {{[row-division] 'arith.divf' must not be in a loop that writes where the divisor is read}}
    %q = arith.divf %a, %b : vector<16xf32>
    vector.maskedstore %by[%j], %mask, %q : memref<64xf32>, vector<16xi1>, vector<16xf32>
  }
  return
}

func.func private @other(memref<1xf32>)

// CHECK-LABEL: func.func @with_a_call(
// CHECK-NOT: scf.if
// CHECK: arith.divf
func.func @with_a_call(%x: memref<64xf32>, %by: memref<1xf32>, %y: memref<64xf32>) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  scf.for %j = %c0 to %c64 step %c16 {
    %d = vector.transfer_read %by[%c0], %zero {in_bounds = [true]} : memref<1xf32>, vector<1xf32>
    %b = vector.broadcast %d : vector<1xf32> to vector<16xf32>
    %a = vector.transfer_read %x[%j], %zero {in_bounds = [true]} : memref<64xf32>, vector<16xf32>
    // expected-remark @below {{[row-division] 'arith.divf' must not be in a loop with 'func.call', which may write where the divisor is read}}
    %q = arith.divf %a, %b : vector<16xf32>
    vector.transfer_write %q, %y[%j] {in_bounds = [true]} : vector<16xf32>, memref<64xf32>
    func.call @other(%by) : (memref<1xf32>) -> ()
  }
  return
}

// CHECK-LABEL: func.func @few_lanes(
// CHECK-NOT: scf.if
// CHECK: arith.divf
func.func @few_lanes(%x: memref<64xf32>, %by: memref<1xf32>, %y: memref<64xf32>) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c64 = arith.constant 64 : index
  scf.for %j = %c0 to %c64 step %c8 {
    %d = vector.transfer_read %by[%c0], %zero {in_bounds = [true]} : memref<1xf32>, vector<1xf32>
    %b = vector.broadcast %d : vector<1xf32> to vector<8xf32>
    %a = vector.transfer_read %x[%j], %zero {in_bounds = [true]} : memref<64xf32>, vector<8xf32>
    // expected-remark @below {{[row-division] 'arith.divf' must be of vectors of a multiple of 16 lanes of f32, but got vector<8xf32>}}
    %q = arith.divf %a, %b : vector<8xf32>
    vector.transfer_write %q, %y[%j] {in_bounds = [true]} : vector<8xf32>, memref<64xf32>
  }
  return
}

// CHECK-LABEL: func.func @several_divisors(
// CHECK-NOT: scf.if
// CHECK: arith.divf
func.func @several_divisors(%x: memref<2x64xf32>, %by: memref<2x1xf32>, %y: memref<2x64xf32>) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  scf.for %j = %c0 to %c64 step %c16 {
    %d = vector.transfer_read %by[%c0, %c0], %zero {in_bounds = [true, true]} : memref<2x1xf32>, vector<2x1xf32>
    %b = vector.broadcast %d : vector<2x1xf32> to vector<2x16xf32>
    %a = vector.transfer_read %x[%c0, %j], %zero {in_bounds = [true, true]} : memref<2x64xf32>, vector<2x16xf32>
    // expected-remark @below {{[row-division] 'arith.divf' must have one divisor in a vector}}
    %q = arith.divf %a, %b : vector<2x16xf32>
    vector.transfer_write %q, %y[%c0, %j] {in_bounds = [true, true]} : vector<2x16xf32>, memref<2x64xf32>
  }
  return
}
