// RUN: %qopt %s --split-input-file --verify-diagnostics --qnn-to-x86=target=avx512vnni

// expected-error @+1 {{qnn-to-x86: module must be at phase vector, but is at llvm}}
module attributes {qnn.phase = "llvm"} {
}

// -----

// expected-error @+1 {{qnn-to-x86: module was lowered for target 'generic', but got 'avx512vnni'}}
module attributes {qnn.phase = "vector", qnn.target = "generic"} {
}
