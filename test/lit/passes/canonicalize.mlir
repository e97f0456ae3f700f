// RUN: %qopt %s --qnn-canonicalize | filecheck %s

// Covers N1: a requantize to its own parameters has the multiplier 1 exactly, and is nothing.
// Data movement on constants happens at compile time; movements of movements become one.

// CHECK-LABEL: func.func @requantize(
// CHECK-NOT: qnn.requantize
// CHECK: return %arg0
func.func @requantize(%arg0: tensor<4xui8>) -> tensor<4xui8> {
  %0 = "qnn.requantize"(%arg0) {
    axis = 0 : i64, input_scale = 0.5 : f64, input_zero_points = array<i64: 10>, multiplier = "f64",
    output_scale = 0.5 : f64, output_zero_point = 10 : i64, rounding = "fixed64_up",
    weight_scales = array<f64: 1.0>
  } : (tensor<4xui8>) -> tensor<4xui8>
  return %0 : tensor<4xui8>
}

// CHECK-LABEL: func.func @lut(
// CHECK-NOT: qnn.lut
// CHECK: return %arg0
func.func @lut(%arg0: tensor<4xui8>) -> tensor<4xui8> {
  %0 = "qnn.lut"(%arg0) {
    input_scale = 0.5 : f64, input_zero_point = 10 : i64, output_scale = 0.5 : f64, output_zero_point = 10 : i64,
    table = dense<"0x000102030405060708090A0B0C0D0E0F101112131415161718191A1B1C1D1E1F202122232425262728292A2B2C2D2E2F303132333435363738393A3B3C3D3E3F404142434445464748494A4B4C4D4E4F505152535455565758595A5B5C5D5E5F606162636465666768696A6B6C6D6E6F707172737475767778797A7B7C7D7E7F808182838485868788898A8B8C8D8E8F909192939495969798999A9B9C9D9E9FA0A1A2A3A4A5A6A7A8A9AAABACADAEAFB0B1B2B3B4B5B6B7B8B9BABBBCBDBEBFC0C1C2C3C4C5C6C7C8C9CACBCCCDCECFD0D1D2D3D4D5D6D7D8D9DADBDCDDDEDFE0E1E2E3E4E5E6E7E8E9EAEBECEDEEEFF0F1F2F3F4F5F6F7F8F9FAFBFCFDFEFF"> : tensor<256xi8>
  } : (tensor<4xui8>) -> tensor<4xui8>
  return %0 : tensor<4xui8>
}

// CHECK-LABEL: func.func @clip(
// CHECK-NOT: qnn.clip
// CHECK: return %arg0
func.func @clip(%arg0: tensor<4xui8>) -> tensor<4xui8> {
  %0 = "qnn.clip"(%arg0) {max = 255 : i64, min = 0 : i64} : (tensor<4xui8>) -> tensor<4xui8>
  return %0 : tensor<4xui8>
}

// CHECK-LABEL: func.func @pad(
// CHECK-NOT: qnn.pad
// CHECK: return %arg0
func.func @pad(%arg0: tensor<4xui8>) -> tensor<4xui8> {
  %0 = "qnn.pad"(%arg0) {
    high = array<i64: 0>, low = array<i64: 0>, value = 3 : i64
  } : (tensor<4xui8>) -> tensor<4xui8>
  return %0 : tensor<4xui8>
}

// CHECK-LABEL: func.func @inverse_transposes(
// CHECK-NOT: qnn.transpose
// CHECK: return %arg0
func.func @inverse_transposes(%arg0: tensor<1x4x4x2xui8>) -> tensor<1x4x4x2xui8> {
  %0 = "qnn.transpose"(%arg0) {permutation = array<i64: 0, 3, 1, 2>} : (tensor<1x4x4x2xui8>) -> tensor<1x2x4x4xui8>
  %1 = "qnn.transpose"(%0) {permutation = array<i64: 0, 2, 3, 1>} : (tensor<1x2x4x4xui8>) -> tensor<1x4x4x2xui8>
  return %1 : tensor<1x4x4x2xui8>
}

// CHECK-LABEL: func.func @transposes(
// CHECK: "qnn.transpose"(%arg0) {permutation = array<i64: 0, 2, 3, 1>}
// CHECK-NOT: qnn.transpose
func.func @transposes(%arg0: tensor<1x4x4x2xui8>) -> tensor<1x4x2x4xui8> {
  %0 = "qnn.transpose"(%arg0) {permutation = array<i64: 0, 3, 1, 2>} : (tensor<1x4x4x2xui8>) -> tensor<1x2x4x4xui8>
  %1 = "qnn.transpose"(%0) {permutation = array<i64: 0, 3, 1, 2>} : (tensor<1x2x4x4xui8>) -> tensor<1x4x2x4xui8>
  return %1 : tensor<1x4x2x4xui8>
}

// CHECK-LABEL: func.func @transpose_of_a_row(
// CHECK: "qnn.reshape"(%arg0) {shape = array<i64: 1, 4, 2, 1>}
func.func @transpose_of_a_row(%arg0: tensor<1x1x4x2xui8>) -> tensor<1x4x2x1xui8> {
  %0 = "qnn.transpose"(%arg0) {permutation = array<i64: 0, 2, 3, 1>} : (tensor<1x1x4x2xui8>) -> tensor<1x4x2x1xui8>
  return %0 : tensor<1x4x2x1xui8>
}

// CHECK-LABEL: func.func @reshapes(
// CHECK: "qnn.reshape"(%arg0) {shape = array<i64: 32>}
// CHECK-NOT: qnn.reshape
func.func @reshapes(%arg0: tensor<1x4x4x2xui8>) -> tensor<32xui8> {
  %0 = "qnn.reshape"(%arg0) {shape = array<i64: 2, 16>} : (tensor<1x4x4x2xui8>) -> tensor<2x16xui8>
  %1 = "qnn.reshape"(%0) {shape = array<i64: 32>} : (tensor<2x16xui8>) -> tensor<32xui8>
  return %1 : tensor<32xui8>
}

// CHECK-LABEL: func.func @constant(
// CHECK: "qnn.constant"() {value = dense<{{\[\[\[\[}}1, 3]]], {{\[\[\[}}2, 4]]]]> : tensor<2x1x1x2xi8>}
// CHECK-NOT: qnn.transpose
// CHECK: qnn.conv2d
func.func @constant(%arg0: tensor<1x2x2x2xui8>) -> tensor<1x2x2x2xi32> {
  %0 = "qnn.constant"() {value = dense<[[[[1, 2], [3, 4]]]]> : tensor<1x1x2x2xi8>} : () -> tensor<1x1x2x2xi8>
  %1 = "qnn.transpose"(%0) {permutation = array<i64: 3, 0, 1, 2>} : (tensor<1x1x2x2xi8>) -> tensor<2x1x1x2xi8>
  %2 = "qnn.conv2d"(%arg0, %1) {
    dilation = array<i64: 1, 1>, groups = 1 : i64, input_scale = 0.25 : f64, input_zero_point = 3 : i64,
    padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>, weight_scales = array<f64: 0.5, 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<1x2x2x2xui8>, tensor<2x1x1x2xi8>) -> tensor<1x2x2x2xi32>
  return %2 : tensor<1x2x2x2xi32>
}

// Small floats that are only moved or chosen from are not extended and truncated: what is left of it is one movement.

// CHECK-LABEL: func.func @moved(
// CHECK-NEXT: %[[MOVED:.*]] = "qnn.transpose"(%arg0) {{.*}} : (tensor<2x3xbf16>) -> tensor<3x2xbf16>
// CHECK-NEXT: return %[[MOVED]]
func.func @moved(%arg0: tensor<2x3xbf16>) -> tensor<3x2xbf16> {
  %0 = arith.extf %arg0 : tensor<2x3xbf16> to tensor<2x3xf32>
  %1 = "qnn.transpose"(%0) {permutation = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %2 = arith.truncf %1 : tensor<3x2xf32> to tensor<3x2xbf16>
  return %2 : tensor<3x2xbf16>
}

// CHECK-LABEL: func.func @chosen(
// CHECK: %[[X:.*]] = arith.extf %arg0
// CHECK: %[[ZERO:.*]] = "qnn.constant"
// CHECK: %[[LARGER:.*]] = arith.maximumf %[[X]], %[[ZERO]]
// CHECK: arith.mulf %[[LARGER]], %[[LARGER]]
func.func @chosen(%arg0: tensor<2x3xf16>) -> tensor<2x3xf32> {
  %0 = arith.extf %arg0 : tensor<2x3xf16> to tensor<2x3xf32>
  %1 = "qnn.constant"() {value = dense<0.0> : tensor<2x3xf32>} : () -> tensor<2x3xf32>
  %2 = arith.maximumf %0, %1 : tensor<2x3xf32>
  %3 = arith.truncf %2 : tensor<2x3xf32> to tensor<2x3xf16>
  %4 = arith.extf %3 : tensor<2x3xf16> to tensor<2x3xf32>
  %5 = arith.mulf %4, %4 : tensor<2x3xf32>
  return %5 : tensor<2x3xf32>
}

// A number that the type lacks is rounded: the pair stays.
// CHECK-LABEL: func.func @rounded(
// CHECK: arith.truncf
// CHECK: arith.extf
func.func @rounded(%arg0: tensor<2x3xf16>) -> tensor<2x3xf32> {
  %0 = arith.extf %arg0 : tensor<2x3xf16> to tensor<2x3xf32>
  %1 = "qnn.constant"() {value = dense<0.1> : tensor<2x3xf32>} : () -> tensor<2x3xf32>
  %2 = arith.maximumf %0, %1 : tensor<2x3xf32>
  %3 = arith.truncf %2 : tensor<2x3xf32> to tensor<2x3xf16>
  %4 = arith.extf %3 : tensor<2x3xf16> to tensor<2x3xf32>
  return %4 : tensor<2x3xf32>
}

// So are numbers between those of an image.
// CHECK-LABEL: func.func @interpolated(
// CHECK: arith.truncf
// CHECK: arith.extf
func.func @interpolated(%arg0: tensor<1x2x2x1xbf16>) -> tensor<1x3x3x1xf32> {
  %0 = arith.extf %arg0 : tensor<1x2x2x1xbf16> to tensor<1x2x2x1xf32>
  %1 = "qnn.resize_bilinear"(%0) {size = array<i64: 3, 3>, arithmetic = "onnx_float", coordinates = "half_pixel"}
    : (tensor<1x2x2x1xf32>) -> tensor<1x3x3x1xf32>
  %2 = arith.truncf %1 : tensor<1x3x3x1xf32> to tensor<1x3x3x1xbf16>
  %3 = arith.extf %2 : tensor<1x3x3x1xbf16> to tensor<1x3x3x1xf32>
  return %3 : tensor<1x3x3x1xf32>
}

// Matrices that a gather picks are turned ahead, so that a column is a row whose products have full vectors.
// CHECK-LABEL: func.func @picked(
// CHECK: %[[MATRICES:.*]] = "qnn.constant"{{.*}}tensor<2x2x3xf32>
// CHECK: %[[PICKED:.*]] = "qnn.dynamic_gather"(%[[MATRICES]], %arg1) : {{.*}} -> tensor<4x2x3xf32>
// CHECK: %[[ROW:.*]] = "qnn.reshape"(%arg0) {{.*}} -> tensor<4x1x2xf32>
// CHECK: "qnn.f32_matmul"(%[[ROW]], %[[PICKED]]) : {{.*}} -> tensor<4x1x3xf32>
func.func @picked(%arg0: tensor<4x2x1xf32>, %arg1: tensor<4xi64>) -> tensor<4x3x1xf32> {
  %0 = "qnn.constant"() {value = dense<[[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]]> : tensor<2x3x2xf32>} : () -> tensor<2x3x2xf32>
  %1 = "qnn.dynamic_gather"(%0, %arg1) : (tensor<2x3x2xf32>, tensor<4xi64>) -> tensor<4x3x2xf32>
  %2 = "qnn.f32_matmul"(%1, %arg0) : (tensor<4x3x2xf32>, tensor<4x2x1xf32>) -> tensor<4x3x1xf32>
  return %2 : tensor<4x3x1xf32>
}
