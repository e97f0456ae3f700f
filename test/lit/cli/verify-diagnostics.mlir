// Every diagnostic has a comment and every comment a diagnostic.
// RUN: %qopt %s --split-input-file --verify-diagnostics
// RUN: not %qopt %S/Inputs/wrong-expectations.mlir --split-input-file --verify-diagnostics 2>&1 | filecheck %s

// CHECK: wrong-expectations.mlir:2:23: error: unexpected error: custom op 'arith.unexpected' is unknown
// CHECK: wrong-expectations.mlir:6:4: error: expected error "never said" was not produced
// CHECK: wrong-expectations.mlir:10:4: error: expected warning "is unknown" was not produced
// CHECK: wrong-expectations.mlir:11:18: error: unexpected error: custom op 'arith.warning' is unknown
// CHECK: wrong-expectations.mlir:15:4: error: invalid regular expression in '{{.*}}'

// expected-error @+1 {{custom op 'arith.next' is unknown}}
func.func @f() { arith.next }

// -----

func.func @f() { arith.this } // expected-error {{arith.this}}

// -----

func.func @f() { arith.before }
// expected-error @-1 {{arith.before}}

// -----

func.func @f() { arith.above }
// expected-error @above {{arith.above}}

// -----

// expected-error @below {{arith.under}}
func.func @f() { arith.under }

// -----

// expected-error-re @+1 {{custom op 'arith.{{[a-z]+}}' is}}
func.func @f() { arith.regex }

// -----

// expected-note @below {{prior use here}}
func.func @f(%x: i32) {
  // expected-error @+1 {{use of value '%x' expects different type than prior uses}}
  %y = arith.addi %x, %x : i64
  return
}
