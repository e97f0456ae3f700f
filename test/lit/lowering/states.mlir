// RUN: %qopt %s --split-input-file --compile-to=linalg --target=generic | filecheck %s

// A state is an output that is read too. Rows are written where it is: nothing copies it.

// CHECK: states = {{\[\[}}0, 0, -1]]
// CHECK: func.func @main(%{{.*}}: memref<16xf32>, %{{.*}}: memref<1xi32>, %[[ROWS:.*]]: memref<128xf32>, %{{.*}}: memref<128xf32>,
// CHECK-NOT: dynamic_scatter data
// CHECK: call @{{.*}}%[[ROWS]]{{.*}} {qnn.label = "qnn.dynamic_scatter"}
// CHECK-NOT: qnn.label = "output
func.func @rows(%rows: tensor<8x16xf32> {qnn.state = 0 : i64}, %x: tensor<1x16xf32>, %i: tensor<1xi32>)
    -> (tensor<8x16xf32>, tensor<8x16xf32>) {
  %0 = "qnn.dynamic_scatter"(%rows, %i, %x) {reduction = "none"}
      : (tensor<8x16xf32>, tensor<1xi32>, tensor<1x16xf32>) -> tensor<8x16xf32>
  %1 = math.exp %0 : tensor<8x16xf32>
  return %0, %1 : tensor<8x16xf32>, tensor<8x16xf32>
}

// -----

// What was there before is read after rows were written: it is copied first.

// CHECK: func.func @main(
// CHECK: qnn.label = "state 0"
// CHECK: qnn.label = "qnn.dynamic_scatter data"
func.func @rows_before(%rows: tensor<8x16xf32> {qnn.state = 0 : i64}, %x: tensor<1x16xf32>, %i: tensor<1xi32>)
    -> (tensor<8x16xf32>, tensor<8x16xf32>) {
  %0 = "qnn.dynamic_scatter"(%rows, %i, %x) {reduction = "none"}
      : (tensor<8x16xf32>, tensor<1xi32>, tensor<1x16xf32>) -> tensor<8x16xf32>
  %1 = math.exp %rows : tensor<8x16xf32>
  return %0, %1 : tensor<8x16xf32>, tensor<8x16xf32>
}

// -----

// Two states that change places.

// CHECK: func.func @main(
// CHECK: qnn.label = "state 1"
// CHECK: qnn.label = "state 0"
// CHECK: qnn.label = "output 0"
// CHECK: qnn.label = "output 1"
func.func @swapped(%a: tensor<8xf32> {qnn.state = 1 : i64}, %b: tensor<8xf32> {qnn.state = 0 : i64})
    -> (tensor<8xf32>, tensor<8xf32>) {
  return %a, %b : tensor<8xf32>, tensor<8xf32>
}
