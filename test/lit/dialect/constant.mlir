// RUN: %roundtrip

// Every element type; splats, extremes, values that are no numbers, and the hexadecimal form of long constants.

// CHECK-LABEL: func.func @signed(
// CHECK: "qnn.constant"() {value = dense<[1, -2, 3]> : tensor<3xi8>} : () -> tensor<3xi8>
func.func @signed() -> tensor<3xi8> {
  %y = "qnn.constant"() {value = dense<[1, -2, 3]> : tensor<3xi8>} : () -> tensor<3xi8>
  return %y : tensor<3xi8>
}

// CHECK-LABEL: func.func @unsigned(
// CHECK: "qnn.constant"() {value = dense<[0, 255]> : tensor<2xui8>} : () -> tensor<2xui8>
func.func @unsigned() -> tensor<2xui8> {
  %y = "qnn.constant"() {value = dense<[0, 255]> : tensor<2xui8>} : () -> tensor<2xui8>
  return %y : tensor<2xui8>
}

// CHECK-LABEL: func.func @splat(
// CHECK: "qnn.constant"() {value = dense<-5> : tensor<4x2xi32>} : () -> tensor<4x2xi32>
func.func @splat() -> tensor<4x2xi32> {
  %y = "qnn.constant"() {value = dense<-5> : tensor<4x2xi32>} : () -> tensor<4x2xi32>
  return %y : tensor<4x2xi32>
}

// CHECK-LABEL: func.func @scalar(
// CHECK: "qnn.constant"() {value = dense<7> : tensor<i16>} : () -> tensor<i16>
func.func @scalar() -> tensor<i16> {
  %y = "qnn.constant"() {value = dense<7> : tensor<i16>} : () -> tensor<i16>
  return %y : tensor<i16>
}

// CHECK-LABEL: func.func @extremes(
// CHECK: "qnn.constant"() {value = dense<[-9223372036854775808, 9223372036854775807]> : tensor<2xi64>
// CHECK-SAME: } : () -> tensor<2xi64>
func.func @extremes() -> tensor<2xi64> {
  %y = "qnn.constant"() {
    value = dense<[-9223372036854775808, 9223372036854775807]> : tensor<2xi64>
  } : () -> tensor<2xi64>
  return %y : tensor<2xi64>
}

// CHECK-LABEL: func.func @real(
// CHECK: "qnn.constant"() {value = dense<[5.000000e-01, 0x7FC00000, 0xFF800000, -0.000000e+00]> : tensor<4xf32>
// CHECK-SAME: } : () -> tensor<4xf32>
func.func @real() -> tensor<4xf32> {
  %y = "qnn.constant"() {value = dense<[0.5, 0x7FC00000, 0xFF800000, -0.0]> : tensor<4xf32>} : () -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// CHECK-LABEL: func.func @hexadecimal(
// CHECK: "qnn.constant"() {value = dense<"0x000102030405060708090A0B0C0D0E0F10111{{[0-9A-F]*}}F6F7F8F9FAFBFCFDFEFF"> : tensor<256xui8>
// CHECK-SAME: } : () -> tensor<256xui8>
func.func @hexadecimal() -> tensor<256xui8> {
  %y = "qnn.constant"() {
    value = dense<"0x000102030405060708090A0B0C0D0E0F101112131415161718191A1B1C1D1E1F202122232425262728292A2B2C2D2E2F303132333435363738393A3B3C3D3E3F404142434445464748494A4B4C4D4E4F505152535455565758595A5B5C5D5E5F606162636465666768696A6B6C6D6E6F707172737475767778797A7B7C7D7E7F808182838485868788898A8B8C8D8E8F909192939495969798999A9B9C9D9E9FA0A1A2A3A4A5A6A7A8A9AAABACADAEAFB0B1B2B3B4B5B6B7B8B9BABBBCBDBEBFC0C1C2C3C4C5C6C7C8C9CACBCCCDCECFD0D1D2D3D4D5D6D7D8D9DADBDCDDDEDFE0E1E2E3E4E5E6E7E8E9EAEBECEDEEEFF0F1F2F3F4F5F6F7F8F9FAFBFCFDFEFF"> : tensor<256xui8>
  } : () -> tensor<256xui8>
  return %y : tensor<256xui8>
}
