// RUN: %qopt %s --compile-to=linalg --target=avx512vbmi | filecheck %s

// A float of 16 bits is stored as its bits. One kernel extends, computes in f32 and rounds half to even, all in integer
// operations, so that every CPU gives the same bits.

// CHECK: func.func private @kernel_0(%{{.*}}: memref<{{.*}}xi16
// CHECK: ^bb0(%[[X:.*]]: i16, %{{.*}}: i16
// CHECK: %[[WIDE:.*]] = arith.extui %[[X]] : i16 to i32
// CHECK: %[[BITS:.*]] = arith.shli %[[WIDE]]
// CHECK: %[[F32:.*]] = arith.bitcast %[[BITS]] : i32 to f32
// CHECK: %[[SQUARE:.*]] = arith.mulf %[[F32]], %[[F32]] : f32
// CHECK: arith.bitcast %[[SQUARE]] : f32 to i32
// CHECK: arith.cmpf uno, %[[SQUARE]], %[[SQUARE]]
// CHECK: arith.trunci %{{.*}} : i32 to i16
// CHECK-NEXT: linalg.yield
func.func @square(%x: tensor<4x64xbf16>) -> tensor<4x64xbf16> {
  %0 = arith.extf %x : tensor<4x64xbf16> to tensor<4x64xf32>
  %1 = arith.mulf %0, %0 : tensor<4x64xf32>
  %2 = arith.truncf %1 : tensor<4x64xf32> to tensor<4x64xbf16>
  return %2 : tensor<4x64xbf16>
}
