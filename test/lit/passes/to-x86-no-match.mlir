// RUN: %qopt %s --split-input-file --verify-diagnostics --qnn-to-x86=target=avx512vnni

// expected-error @+1 {{qnn-to-x86: module must be at phase vector, but is at llvm}}
module attributes {qnn.phase = "llvm"} {
}

// -----

// expected-error @+1 {{qnn-to-x86: module was lowered for target 'generic', but got 'avx512vnni'}}
module attributes {qnn.phase = "vector", qnn.target = "generic"} {
}

// -----

// expected-error @+1 {{module must be at phase vector, but is at qnn or fused; run qnn-to-linalg, qnn-to-vector before}}
module {
  func.func @main(%x: tensor<4xi8>) -> tensor<4xi8> {
    %0 = "qnn.clip"(%x) {min = 0 : i64, max = 6 : i64} : (tensor<4xi8>) -> tensor<4xi8>
    return %0 : tensor<4xi8>
  }
}

// -----

// expected-error @+1 {{qnn-to-x86: module must be at phase vector, but is at linalg; run qnn-to-vector before}}
module {
  func.func @main(%x: memref<4xi8>, %y: memref<4xi8>) {
    linalg.copy ins(%x : memref<4xi8>) outs(%y : memref<4xi8>)
    return
  }
}
