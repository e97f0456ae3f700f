// A text mixes our passes with MLIR's, nested ones included; what is wrong has its column.
// RUN: %qopt %s --pass-pipeline='builtin.module(qnn-canonicalize, func.func(cse, canonicalize{max-iterations=1}))' | filecheck %s
// RUN: %qopt %s --pass-pipeline='builtin.module()' | filecheck %s --check-prefix=NONE
// RUN: not %qopt %s --pass-pipeline='builtin.module(cse,nope)' 2>&1 | filecheck %s --check-prefix=UNKNOWN
// RUN: not %qopt %s --pass-pipeline='builtin.module(func.func(qnn-canonicalize))' 2>&1 | filecheck %s --check-prefix=NESTED
// RUN: not %qopt %s --pass-pipeline='builtin.module(cse' 2>&1 | filecheck %s --check-prefix=OPEN

// UNKNOWN: <pass-pipeline>:1:20: error: unknown pass 'nope'
// NESTED: <pass-pipeline>:1:26: error: 'qnn-canonicalize' works on a module, so it cannot be nested in 'func.func'
// OPEN: <pass-pipeline>:1:19: error: expected ',' or ')', but got the end

// CHECK-LABEL: func.func @f
// NONE-LABEL: func.func @f
func.func @f(%x: tensor<2x4xi8>) -> (tensor<2x4xi8>, i32) {
  // CHECK-NOT: qnn.reshape
  // NONE: qnn.reshape
  %same = "qnn.reshape"(%x) {shape = array<i64: 2, 4>} : (tensor<2x4xi8>) -> tensor<2x4xi8>
  // CHECK: arith.constant
  // CHECK-NOT: arith.addi
  %one = arith.constant 1 : i32
  %two = arith.addi %one, %one : i32
  return %same, %two : tensor<2x4xi8>, i32
}
