// RUN: %qopt %s --split-input-file --verify-diagnostics --qnn-to-llvm

// expected-error @+1 {{qnn-to-llvm: module must be at phase x86, but is at vector}}
module attributes {qnn.phase = "vector"} {
}

// -----

// A sum of products must not be fused: every product is rounded before it is added.
func.func @main(%a: f32, %b: f32, %c: f32) -> f32 {
  // expected-error @+2 {{qnn-to-llvm: after phase llvm: 1 ops break its contract}}
  // expected-note @+1 {{'llvm.intr.fma' op adds a product that is not rounded}}
  %0 = math.fma %a, %b, %c : f32
  return %0 : f32
}
