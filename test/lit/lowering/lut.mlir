// RUN: %qopt %s --compile-to=vector --target=generic | filecheck %s
// RUN: %qopt %s --compile-to=x86 --target=avx512vbmi | filecheck %s --check-prefix=X86

// A table on its own is vector code: 64 bytes at a time, and one shorter vector for the rest.

// CHECK-LABEL: func.func private @kernel_0(
// CHECK: scf.for
// CHECK: vector.gather %{{.*}} : memref<256xi8>, vector<64xindex>, vector<64xi1>, vector<64xi8> into vector<64xi8>
// CHECK: vector.gather %{{.*}} : memref<256xi8>, vector<18xindex>, vector<18xi1>, vector<18xi8> into vector<18xi8>
// CHECK-NOT: memref.{{copy|load|store}}

// X86-LABEL: func.func private @kernel_0(
// X86-COUNT-4: "llvm.x86.avx512.vpermi2var.qi.512"
// X86-NOT: vector.gather
// X86-LABEL: func.func @main(
func.func @main(%x: tensor<3x70xi8>) -> tensor<3x70xui8> {
  %0 = "qnn.sigmoid"(%x) {
    input_scale = 0.1 : f64, input_zero_point = 3 : i64, output_scale = 0.00390625 : f64, output_zero_point = 0 : i64,
    entries = "half_away_divide", nan = "max"
  } : (tensor<3x70xi8>) -> tensor<3x70xui8>
  return %0 : tensor<3x70xui8>
}
