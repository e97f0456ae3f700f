// RUN: %python %S/Inputs/x86_step.py %s --target=avx512vbmi > %t && filecheck %s --input-file=%t

// A number that an innermost loop does not change is read before it, with what depends on it alone.

// CHECK-LABEL: func.func @scaled(
// CHECK: %[[NUMBER:.*]] = vector.transfer_read %{{.*}}[], %{{.*}} : memref<f32>, vector<f32>
// CHECK: %[[SPREAD:.*]] = vector.broadcast %[[NUMBER]] : vector<f32> to vector<16xf32>
// CHECK: %[[DOUBLE:.*]] = arith.addf %[[SPREAD]], %[[SPREAD]]
// CHECK: scf.for
// CHECK-NEXT: %[[X:.*]] = vector.transfer_read
// CHECK-NEXT: arith.mulf %[[X]], %[[DOUBLE]]
func.func @scaled(%x: memref<64xf32>, %by: memref<f32>, %y: memref<64xf32>) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  scf.for %i = %c0 to %c64 step %c16 {
    %a = vector.transfer_read %x[%i], %zero {in_bounds = [true]} : memref<64xf32>, vector<16xf32>
    %n = vector.transfer_read %by[], %zero : memref<f32>, vector<f32>
    %s = vector.broadcast %n : vector<f32> to vector<16xf32>
    %d = arith.addf %s, %s : vector<16xf32>
    %p = arith.mulf %a, %d : vector<16xf32>
    vector.transfer_write %p, %y[%i] {in_bounds = [true]} : vector<16xf32>, memref<64xf32>
  }
  return
}

// CHECK-LABEL: func.func @written(
// CHECK: scf.for
// CHECK: vector.transfer_read {{.*}} : memref<f32>, vector<f32>
func.func @written(%x: memref<64xf32>, %by: memref<f32>) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  scf.for %i = %c0 to %c64 step %c16 {
    %n = vector.transfer_read %by[], %zero : memref<f32>, vector<f32>
    %s = vector.broadcast %n : vector<f32> to vector<16xf32>
    vector.transfer_write %s, %x[%i] {in_bounds = [true]} : vector<16xf32>, memref<64xf32>
    %d = arith.addf %n, %n : vector<f32>
    vector.transfer_write %d, %by[] : vector<f32>, memref<f32>
  }
  return
}

// A call may write anywhere.

// CHECK-LABEL: func.func @called(
// CHECK: scf.for
// CHECK: vector.transfer_read {{.*}} : memref<f32>, vector<f32>
func.func private @other()
func.func @called(%x: memref<64xf32>, %by: memref<f32>) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  scf.for %i = %c0 to %c64 step %c16 {
    %n = vector.transfer_read %by[], %zero : memref<f32>, vector<f32>
    %s = vector.broadcast %n : vector<f32> to vector<16xf32>
    vector.transfer_write %s, %x[%i] {in_bounds = [true]} : vector<16xf32>, memref<64xf32>
    func.call @other() : () -> ()
  }
  return
}

// What an outer loop reads stays: its inner loops would have a register less.

// CHECK-LABEL: func.func @outer(
// CHECK: scf.for
// CHECK: vector.transfer_read {{.*}} : memref<f32>, vector<f32>
// CHECK: scf.for
func.func @outer(%x: memref<4x64xf32>, %by: memref<f32>) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  scf.for %j = %c0 to %c4 step %c1 {
    %n = vector.transfer_read %by[], %zero : memref<f32>, vector<f32>
    %s = vector.broadcast %n : vector<f32> to vector<16xf32>
    scf.for %i = %c0 to %c64 step %c16 {
      vector.transfer_write %s, %x[%j, %i] {in_bounds = [true]} : vector<16xf32>, memref<4x64xf32>
    }
  }
  return
}
