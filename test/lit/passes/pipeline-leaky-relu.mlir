// RUN: %qopt %s --fuse-qnn | filecheck %s --check-prefix=LUT
// RUN: %qopt %s --fuse-qnn=leaky-relu=lut | filecheck %s --check-prefix=LUT
// RUN: %qopt %s --fuse-qnn=leaky-relu=fixed | filecheck %s --check-prefix=FIXED
// RUN: %qopt %s --fuse-qnn=leaky-relu=tflite | filecheck %s --check-prefix=TFLITE
// RUN: %qopt %s --pass-pipeline='builtin.module(qnn-tabulate-unary{leaky-relu=tflite})' | filecheck %s --check-prefix=TFLITE

// Covers R4: the option chooses the arithmetic; by default each op keeps its own, here the table of the float function.

// LUT: table = dense<"0x2A2A2B2B2C2C2C2D2D2E2E2E2F2F303030313132323233333434343535363636373738383839393A3A3A3B3B3C3C3C3D3D3E3E3E3F3F40404041414242424343444444454546
// FIXED: table = dense<"0x2A2A2B2B2B2C2C2D2D2E2E2E2F2F303030313131323233333434343535363636373737383839393A3A3A3B3B3C3C3C3D3D3D3E3E3F3F40404141414242424343444444454546
// TFLITE: table = dense<"0x2A2A2B2B2B2C2C2D2D2D2E2E2F2F2F303031313132323333333434353535363637373738383939393A3A3B3B3B3C3C3D3D3D3E3E3F3F3F404041414142424343434444454545
func.func @leaky_relu(%arg0: tensor<4xui8>) -> tensor<4xui8> {
  %0 = "qnn.leaky_relu"(%arg0) {
    alpha = 0.3 : f64, entries = "half_away_divide", input_scale = 0.5 : f64, input_zero_point = 120 : i64,
    mode = "lut", nan = "max", output_scale = 0.375 : f64, output_zero_point = 90 : i64
  } : (tensor<4xui8>) -> tensor<4xui8>
  return %0 : tensor<4xui8>
}
