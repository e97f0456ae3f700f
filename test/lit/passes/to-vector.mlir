// RUN: %qopt %s --qnn-to-vector | filecheck %s

// The generic is tiled by its tile sizes, 16 elements at a time, and vectorized; no tensor is left.

// CHECK: module attributes {qnn.phase = "vector"}
// CHECK-LABEL: func.func @negate(
// CHECK: scf.for
// CHECK: vector.transfer_read {{.*}} vector<16xi32>
// CHECK: arith.subi %{{.*}} : vector<16xi32>
// CHECK: vector.transfer_write
// CHECK-NOT: tensor
func.func @negate(%data: memref<64xi32>, %output: memref<64xi32>) {
  %zero = arith.constant 0 : i32
  %0 = bufferization.to_tensor %data restrict : memref<64xi32> to tensor<64xi32>
  %1 = bufferization.to_tensor %output restrict writable : memref<64xi32> to tensor<64xi32>
  %2 = linalg.generic {
    indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]
  } ins(%0 : tensor<64xi32>) outs(%1 : tensor<64xi32>)
  attrs = {qnn.micro_kernel = 0 : i64, qnn.role = "root", qnn.tiles = array<i64: 16>} {
  ^bb0(%x: i32, %o: i32):
    %3 = arith.subi %zero, %x : i32
    linalg.yield %3 : i32
  } -> tensor<64xi32>
  bufferization.materialize_in_destination %2 in restrict writable %output : (tensor<64xi32>, memref<64xi32>) -> ()
  return
}
