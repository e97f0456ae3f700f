// A report says of every node what it became, which kernel computes it and what blocks it.
// RUN: %python %S/Inputs/seeded.py %t.tflite
// RUN: %qimport %t.tflite --report | filecheck %s
// RUN: %qimport %t.tflite --report -o %t.txt && filecheck %s --input-file %t.txt
// RUN: %python %S/Inputs/unsupported.py %t.blocked.tflite
// RUN: not %qimport %t.blocked.tflite --report 2>&1 | filecheck %s --check-prefix=BLOCKED

// CHECK: node became computed by
// CHECK-NEXT: node 0 CONV_2D ('Conv2d_0') conv2d, requantize #{{[0-9]+}} {{.*}}qnn.fused_conv2d
// CHECK: RESHAPE {{.*}} reshape no kernel: known while compiling, or a view of what is there
// CHECK: nodes in {{[0-9]+}} kernel calls ({{[0-9]+}} qnn.fused_conv2d
// CHECK: distinct kernels, {{[0-9]+}} bytes of working memory
// CHECK: tensors stored between them: {{[0-9]+}} 8-bit

// BLOCKED: node blocked by
// BLOCKED-NEXT: node 0 RELU ('y') supported
// BLOCKED-NEXT: node 1 HASHTABLE_LOOKUP ('z') operator is not supported
// BLOCKED: 1 of 2 nodes are not supported
// BLOCKED: error: '{{.*}}.blocked.tflite' has 1 unsupported operation
