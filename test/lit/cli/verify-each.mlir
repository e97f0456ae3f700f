// A pass that leaves an invalid module is named, unless nobody asks.
// RUN: not %qopt %s --load-pass-plugin=%S/Inputs/plugin.py --break-module 2>&1 | filecheck %s
// RUN: not %qopt %s --load-pass-plugin=%S/Inputs/plugin.py --break-module --verify-each=true 2>&1 | filecheck %s
// RUN: %qopt %s --load-pass-plugin=%S/Inputs/plugin.py --break-module --verify-each=false | filecheck %s --check-prefix=BROKEN
// RUN: not %qopt %s --verify-each=perhaps 2>&1 | filecheck %s --check-prefix=BAD

// CHECK: verify-each.mlir:12:8: error: break-module: 'qnn.reshape' op {{.*}}
// BROKEN: shape = array<i64: 7>
// BAD: error: argument --verify-each: must be true or false, but got 'perhaps'

func.func @f(%x: tensor<2x4xi8>) -> tensor<8xi8> {
  %0 = "qnn.reshape"(%x) {shape = array<i64: 8>} : (tensor<2x4xi8>) -> tensor<8xi8>
  return %0 : tensor<8xi8>
}
