// RUN: %python %S/Inputs/x86_step.py %s --target=znver5 > %t && filecheck %s --input-file=%t

// A core that divides fast does so.

// CHECK: arith.divf %{{.*}} : vector<1x32xf32>
// CHECK-NOT: math.fma
func.func @rows(%x: vector<1x32xf32>, %y: f32) -> vector<1x32xf32> {
  %0 = vector.broadcast %y : f32 to vector<1x32xf32>
  %1 = arith.divf %x, %0 : vector<1x32xf32>
  return %1 : vector<1x32xf32>
}
