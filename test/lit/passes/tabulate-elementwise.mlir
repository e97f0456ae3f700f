// RUN: %qopt %s --qnn-tabulate-elementwise | filecheck %s

// Covers R1, R16: element-wise ops from 8 bits to 8 bits are the table of what they compute, whatever they are.

// CHECK-LABEL: func.func @shifted_product(
// CHECK-NOT: arith.
// CHECK: "qnn.lut"(%arg0) {{.*}}table = dense<"0x3F3F4041
// CHECK-NEXT: return
func.func @shifted_product(%x: tensor<4x3xi8>) -> tensor<4x3xi8> {
  %m = arith.constant dense<3> : tensor<4x3xi64>
  %r = arith.constant dense<2> : tensor<4x3xi64>
  %b = arith.constant dense<63> : tensor<4x3xi32>
  %0 = arith.extsi %x : tensor<4x3xi8> to tensor<4x3xi64>
  %1 = arith.muli %0, %m : tensor<4x3xi64>
  %2 = arith.shrsi %1, %r : tensor<4x3xi64>
  %3 = arith.trunci %2 : tensor<4x3xi64> to tensor<4x3xi32>
  %4 = arith.addi %3, %b : tensor<4x3xi32>
  %5 = arith.trunci %4 : tensor<4x3xi32> to tensor<4x3xi8>
  return %5 : tensor<4x3xi8>
}

// A value that clamps keeps the meaning of the one before.
// CHECK-LABEL: func.func @clamp_of_unsigned(
// CHECK: "qnn.lut"({{.*}}input_scale = 5.000000e-01 : f64, input_zero_point = 3 : i64, output_scale = 5.000000e-01 : f64, output_zero_point = 3 : i64
// CHECK-NEXT: return
func.func @clamp_of_unsigned(%x: tensor<4x3xi32>) -> tensor<4x3xui8> {
  %0 = "qnn.requantize"(%x) {
    axis = 1 : i64, input_scale = 0.25 : f64, input_zero_points = array<i64: 0>, multiplier = "f64",
    output_scale = 0.5 : f64, output_zero_point = 3 : i64, rounding = "fixed64_up", weight_scales = array<f64: 1.0>
  } : (tensor<4x3xi32>) -> tensor<4x3xui8>
  %lo = arith.constant dense<3> : tensor<4x3xi32>
  %1 = tensor.bitcast %0 : tensor<4x3xui8> to tensor<4x3xi8>
  %2 = arith.extui %1 : tensor<4x3xi8> to tensor<4x3xi32>
  %3 = arith.cmpi slt, %2, %lo : tensor<4x3xi32>
  %4 = arith.select %3, %lo, %2 : tensor<4x3xi1>, tensor<4x3xi32>
  %5 = arith.trunci %4 : tensor<4x3xi32> to tensor<4x3xi8>
  %6 = tensor.bitcast %5 : tensor<4x3xi8> to tensor<4x3xui8>
  return %6 : tensor<4x3xui8>
}

// Both results are tables of the one tensor; the shared op goes with them.
// CHECK-LABEL: func.func @two_results(
// CHECK: "qnn.lut"(%arg0)
// CHECK-NEXT: "qnn.lut"(%arg0)
// CHECK-NEXT: return
func.func @two_results(%x: tensor<4x3xi8>) -> (tensor<4x3xi8>, tensor<4x3xi8>) {
  %0 = arith.sitofp %x : tensor<4x3xi8> to tensor<4x3xf32>
  %1 = math.absf %0 : tensor<4x3xf32>
  %2 = math.sqrt %1 : tensor<4x3xf32>
  %3 = math.round %2 : tensor<4x3xf32>
  %4 = math.floor %2 : tensor<4x3xf32>
  %5 = arith.fptosi %3 : tensor<4x3xf32> to tensor<4x3xi8>
  %6 = arith.fptosi %4 : tensor<4x3xf32> to tensor<4x3xi8>
  return %5, %6 : tensor<4x3xi8>, tensor<4x3xi8>
}
