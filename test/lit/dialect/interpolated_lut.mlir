// RUN: %roundtrip

// CHECK-LABEL: func.func @hat(
// CHECK: "qnn.interpolated_lut"(%arg0) {bases = array<i64: 0, 4>, fraction = 4 : i64, slopes = array<i64: 4, -4>}
// CHECK-SAME: (tensor<7xi32>) -> tensor<7xi32>
func.func @hat(%x: tensor<7xi32>) -> tensor<7xi32> {
  %y = "qnn.interpolated_lut"(%x) {
    bases = array<i64: 0, 4>, fraction = 4 : i64, slopes = array<i64: 4, -4>
  } : (tensor<7xi32>) -> tensor<7xi32>
  return %y : tensor<7xi32>
}
