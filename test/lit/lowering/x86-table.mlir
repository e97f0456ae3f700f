// RUN: %qopt %s --compile-to=vector --target=avx512vbmi | filecheck %s --check-prefix=VECTOR
// RUN: %qopt %s --compile-to=x86 --target=avx512vbmi | filecheck %s --check-prefix=VBMI
// RUN: %qopt %s --compile-to=x86 --target=avx512vnni | filecheck %s --check-prefixes=SHUFFLES,ZMM
// RUN: %qopt %s --compile-to=x86 --target=avx2 | filecheck %s --check-prefixes=SHUFFLES,YMM
// RUN: %qopt %s --compile-to=x86 --target=sse4.1 | filecheck %s --check-prefixes=SHUFFLES,XMM
// RUN: %qopt %s --compile-to=llvm --target=x86-64 | filecheck %s --check-prefix=SLOWER
// RUN: %qopt %s --compile-to=llvm --target=generic | filecheck %s --check-prefix=SLOWER

// R2: a table alone.  Tables are indexed by the stored code, which is unsigned: 256 entries are four registers, two
// permutes of 128 entries each, and a choice by the index's top bit.

// VECTOR: vector.gather {{.*}} : memref<256xi8>, {{.*}} into vector<64xi8>
// VBMI-COUNT-4: vector.load %{{.*}} : memref<256xi8>, vector<64xi8>
// VBMI-COUNT-2: "llvm.x86.avx512.vpermi2var.qi.512"
// VBMI: %[[TOP:.*]] = arith.cmpi slt
// VBMI: arith.select %[[TOP]]
// VBMI-NOT: vpermi2var
// VBMI-NOT: vector.gather

// Without byte permutes sixteen shuffles of 16 entries each do it, of the differences between neighbouring entries.
// SHUFFLES-COUNT-16: vector.load %{{.*}} : memref<256xi8>, vector<16xi8>
// ZMM-COUNT-16: "llvm.x86.avx512.pshuf.b.512"
// YMM-COUNT-32: "llvm.x86.avx2.pshuf.b"
// XMM-COUNT-64: "llvm.x86.ssse3.pshuf.b.128"
// SHUFFLES-NOT: vector.gather

// A target without the instruction leaves the look-up to LLVM.
// SLOWER: llvm.intr.masked.gather
// SLOWER-NOT: llvm.x86
func.func @main(%x: tensor<4x64xi8>) -> tensor<4x64xi8> {
  %0 = "qnn.tanh"(%x) {
    input_scale = 2.0 : f64, input_zero_point = -3 : i64, output_scale = 0.00390625 : f64, output_zero_point = 0 : i64,
    entries = "half_away_divide", nan = "max"
  } : (tensor<4x64xi8>) -> tensor<4x64xi8>
  return %0 : tensor<4x64xi8>
}
