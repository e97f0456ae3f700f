// RUN: %qopt %s --fuse-qnn --cse --mlir-timing 2>&1 >%t | filecheck %s
// RUN: %qopt %s --mlir-timing 2>&1 >%t | filecheck %s --check-prefix=NOTHING

// CHECK: Execution time report
// CHECK: Total Execution Time: {{[0-9.]+}} seconds
// CHECK: {{[0-9.]+}} ({{.*}}%)  qnn-canonicalize
// CHECK: {{[0-9.]+}} ({{.*}}%)  cse
// CHECK: {{[0-9.]+}} (100.0%)  Total
// NOTHING: 0.0000 (100.0%)  Total

func.func @f() {
  return
}
