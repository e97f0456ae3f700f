// RUN: %qopt %s --split-input-file --output-split-marker="// next" | filecheck %s
// RUN: not %qopt %s --split-input-file --fuse-qnn=leaky-relu=x 2>&1 | filecheck %s --check-prefix=WRONG
// CHECK: @f
// CHECK: {{^}}// next
// CHECK-NEXT: module
// CHECK: @g
// WRONG: argument '--fuse-qnn=leaky-relu=x'
func.func @f() { return }
// -----
func.func @g() { return }
