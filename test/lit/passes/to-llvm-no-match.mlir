// RUN: %qopt %s --split-input-file --verify-diagnostics --qnn-to-llvm

// expected-error @+1 {{qnn-to-llvm: module must be at phase x86, but is at vector}}
module attributes {qnn.phase = "vector"} {
}

// -----

// A sum of products must not be fused: every product is rounded before it is added.
func.func @main(%a: vector<4xf32>, %b: vector<4xf32>) -> vector<4xf32> {
  // expected-error @+2 {{qnn-to-llvm: after phase x86: 1 ops break its contract}}
  // expected-note @+1 {{'vector.fma' op adds a product that is not rounded}}
  %0 = vector.fma %a, %b, %b : vector<4xf32>
  return %0 : vector<4xf32>
}

// -----

// An algorithm that asks for a fused multiply-add by name gets it.
func.func @main(%a: f32, %b: f32, %c: f32) -> f32 {
  %0 = math.fma %a, %b, %c : f32
  return %0 : f32
}

// -----

// expected-error @+1 {{but is at fused; run qnn-to-linalg, qnn-to-vector, qnn-to-x86 before}}
module attributes {qnn.phase = "fused"} {
  func.func @main(%x: tensor<4xi8>) -> tensor<4xi8> {
    %0 = "qnn.clip"(%x) {min = 0 : i64, max = 6 : i64} : (tensor<4xi8>) -> tensor<4xi8>
    return %0 : tensor<4xi8>
  }
}

// -----

// expected-error @+1 {{qnn-to-llvm: module must be at phase x86, but is at llvm; no pass leads back}}
module {
  llvm.func @main() {
    llvm.return
  }
}

// -----

// expected-error @+1 {{a module must have a function main with a body to be lowered, but got no function}}
module {
}

// -----

// expected-error @+1 {{a module must have a function main with a body to be lowered, but got f}}
func.func @f() {
  return
}

// -----

// expected-error @+1 {{a module must have a function main with a body to be lowered, but got a declaration}}
func.func private @main()

// -----

// expected-error @+1 {{a module must have a function main with a body to be lowered, but got no function}}
memref.global "private" @main : memref<4xi8> = dense<1>

// -----

func.func @main(%x: memref<4xi8>) {
  // expected-error @+1 {{'omp.parallel' op must have a constant number of threads}}
  omp.parallel {
    omp.terminator
  }
  return
}

// -----

func.func @main(%x: memref<4xi8>, %n: i32) {
  // expected-error @+1 {{'omp.parallel' op must have a constant number of threads}}
  omp.parallel num_threads(%n : i32) {
    omp.terminator
  }
  return
}

// -----

func.func @main(%x: memref<64xi8>) {
  %n = arith.constant 2 : i32
  // expected-error @+1 {{qnn.record must be an offset of 32 bytes in the last argument of main, a multiple of 8}}
  omp.parallel num_threads(%n : i32) {
    omp.terminator
  }
  return
}

// -----

func.func @main(%x: memref<64xi8>) {
  %n = arith.constant 2 : i32
  // expected-error @+1 {{qnn.record must be an offset of 32 bytes in the last argument of main, a multiple of 8}}
  omp.parallel num_threads(%n : i32) {
    omp.terminator
  } {qnn.record = 33 : i64}
  return
}

// -----

func.func @main(%x: memref<64xi8>) {
  %n = arith.constant 2 : i32
  // expected-error @+1 {{qnn.record must be an offset of 32 bytes in the last argument of main, a multiple of 8}}
  omp.parallel num_threads(%n : i32) {
    omp.terminator
  } {qnn.record = 48 : i64}
  return
}

// -----

func.func @main(%x: memref<64xi8>) {
  %n = arith.constant 2 : i32
  // expected-error @+1 {{qnn.record must be an offset of 32 bytes in the last argument of main, a multiple of 8}}
  omp.parallel num_threads(%n : i32) {
    omp.terminator
  } {qnn.record = -8 : i64}
  return
}

// -----

func.func @main(%x: memref<64xi8>) {
  %n = arith.constant 2 : i32
  // expected-error @+1 {{qnn.record must be an offset of 32 bytes in the last argument of main, a multiple of 8}}
  omp.parallel num_threads(%n : i32) {
    omp.terminator
  } {qnn.record = 0.0 : f64}
  return
}

// -----

func.func @main(%x: memref<?xi8>) {
  %n = arith.constant 2 : i32
  // expected-error @+1 {{qnn.record must be an offset of 32 bytes in the last argument of main, a multiple of 8}}
  omp.parallel num_threads(%n : i32) {
    omp.terminator
  } {qnn.record = 0 : i64}
  return
}

// -----

func.func @main(%x: memref<2xi8>) {
  %n = arith.constant 2 : i32
  // expected-error @+1 {{qnn.record must be an offset of 32 bytes in the last argument of main, a multiple of 8}}
  omp.parallel num_threads(%n : i32) {
    omp.terminator
  } {qnn.record = 0 : i64}
  return
}

// -----

func.func @main(%x: i64) {
  %n = arith.constant 2 : i32
  // expected-error @+1 {{qnn.record must be an offset of 32 bytes in the last argument of main, a multiple of 8}}
  omp.parallel num_threads(%n : i32) {
    omp.terminator
  } {qnn.record = 0 : i64}
  return
}

// -----

func.func @main(%i: index) {
  %0 = memref.alloc(%i) : memref<?xi8>
  // expected-note @+2 {{see current operation}}
  // expected-error @+1 {{qnn-to-llvm: 'llvm.call' op 'other' does not reference a valid}}
  call @other(%0) : (memref<?xi8>) -> ()
  return
}
func.func @other(%x: memref<?xi8>) {
  return
}
