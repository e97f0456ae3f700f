// A pass takes its options after '='; a pass of MLIR that works on functions alone is nested in them.
// RUN: %qopt %s --canonicalize='max-iterations=1 region-simplify=disabled' | filecheck %s --check-prefix=OPTIONS
// RUN: %qopt %s --llvm-request-c-wrappers | filecheck %s --check-prefix=NESTED
// RUN: not %qopt %s --canonicalize=speed=1 2>&1 | filecheck %s --check-prefix=UNKNOWN
// RUN: not %qopt %s --canonicalize='top-down=seven' 2>&1 | filecheck %s --check-prefix=VALUE
// RUN: not %qopt %s --qnn-canonicalize=speed=1 2>&1 | filecheck %s --check-prefix=OWN-UNKNOWN
// RUN: not %qopt %s --fuse-qnn=leaky-relu=fast 2>&1 | filecheck %s --check-prefix=OWN-VALUE

// OPTIONS-NOT: arith.addi
// NESTED: llvm.emit_c_interface
// UNKNOWN: error: argument '--canonicalize=speed=1': no such option speed
// VALUE: error: argument '--canonicalize=top-down=seven': failed to add
// OWN-UNKNOWN: error: argument '--qnn-canonicalize=speed=1': 'qnn-canonicalize' has no option 'speed', its options are: none
// OWN-VALUE: error: argument '--fuse-qnn=leaky-relu=fast': option 'leaky-relu' of 'fuse-qnn' must be one of {{.*}}, but got 'fast'

module {
  func.func @f(%x: i32) -> i32 {
    %zero = arith.constant 0 : i32
    %sum = arith.addi %x, %zero : i32
    return %sum : i32
  }
}
