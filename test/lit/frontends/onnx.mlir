// Units between DequantizeLinear and QuantizeLinear become integer ops with ONNX Runtime's arithmetic (R15: ort), the
// channels last between the edges; what is not supported is named at once.
// RUN: %python %S/Inputs/onnx_conv.py %t.onnx
// RUN: %qimport %t.onnx --batch 2 | filecheck %s
// RUN: %qimport %t.onnx --fuse | filecheck %s --check-prefix=FUSED
// RUN: %python %S/Inputs/onnx_conv.py %t.bad.onnx --unsupported
// RUN: not %qimport %t.bad.onnx 2>&1 | filecheck %s --check-prefix=UNKNOWN
// RUN: head -c 100 %t.onnx > %t.short.onnx
// RUN: not %qimport %t.short.onnx 2>&1 | filecheck %s --check-prefix=SHORT
// RUN: %qimport --list-operators | filecheck %s --check-prefix=LIST

// CHECK: func.func public @main(%arg0: tensor<2x2x4x4xf32> {qnn.name = "image"}) -> (tensor<2x2x4x4xf32> {qnn.name = "sum"})
// CHECK: "qnn.quantize"(%arg0)
// CHECK-SAME: nan = "min", scales = array<f64: 5.000000e-01>, zero_points = array<i64: 128>
// CHECK: "qnn.transpose"
// CHECK-SAME: permutation = array<i64: 0, 2, 3, 1>
// CHECK: "qnn.conv2d"
// CHECK-SAME: weight_scales = array<f64: 2.500000e-01, 1.250000e-01>
// CHECK-NEXT: "qnn.requantize"
// CHECK-SAME: axis = 3 : i64
// CHECK-SAME: multiplier = "f32"
// CHECK-SAME: rounding = "f32_rne_zp_last"
// CHECK-NEXT: "qnn.clip"
// CHECK-SAME: min = 3 : i64
// CHECK-NEXT: "qnn.add"
// CHECK-SAME: arithmetic = "float_once"
// CHECK-NEXT: "qnn.dequantize"
// CHECK-NEXT: "qnn.transpose"
// CHECK-SAME: permutation = array<i64: 0, 3, 1, 2>
// CHECK-NEXT: return

// FUSED: "qnn.fused_conv2d"
// FUSED-SAME: {add = {arithmetic = "float_once"
// FUSED-NEXT: "qnn.transpose"
// FUSED-NEXT: "qnn.dequantize"

// UNKNOWN: error: {{.*}} has 2 unsupported operations
// UNKNOWN-NEXT: note: node {{[0-9]+}} Unique ('soft'): operator is not supported
// UNKNOWN-NEXT: note: node {{[0-9]+}} StringNormalizer ('text'): operator is not supported

// SHORT: error: {{.*}}file is damaged
// LIST: operators of .onnx files:
// LIST-NEXT: Abs, Acos, Acosh, Add
