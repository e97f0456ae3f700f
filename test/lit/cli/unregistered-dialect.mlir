// RUN: %qopt %s --allow-unregistered-dialect | filecheck %s
// RUN: not %qopt %s 2>&1 | filecheck %s --check-prefix=REFUSED

// CHECK: "some.op"()
// REFUSED: unregistered-dialect.mlir:6:{{[0-9]+}}: error: {{.*}}allow-unregistered-dialect
"some.op"() : () -> ()
