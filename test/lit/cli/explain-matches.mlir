// The reasons of patterns that refused are remarks on stderr, with the place of the op; --verify-diagnostics sees them.
// RUN: %qopt %s --qnn-canonicalize --explain-matches 2>&1 >%t | filecheck %s
// RUN: %qopt %s --qnn-canonicalize --explain-matches --verify-diagnostics
// RUN: %qopt %s --qnn-canonicalize 2>&1 >%t | filecheck %s --check-prefix=SILENT --allow-empty

// CHECK: explain-matches.mlir:15:8: remark: [remove-identity] 'qnn.requantize' keeps the scale but moves the zero point
// SILENT-NOT: remark

// Where the place of an op is not known, the node of the model is named.
// RUN: sed 's/-> tensor<4xi8>$/-> tensor<4xi8> loc("layer 1")/' %s | %qopt - --qnn-canonicalize --explain-matches 2>&1 >%t | filecheck %s --check-prefix=NODE
// NODE: remark: [remove-identity] 'qnn.requantize' at node 'layer 1' keeps the scale

func.func @f(%x: tensor<4xi8>) -> tensor<4xi8> {
  // expected-remark @+1 {{[remove-identity] 'qnn.requantize' keeps the scale but moves the zero point}}
  %0 = "qnn.requantize"(%x) {
    input_scale = 0.5 : f64, weight_scales = array<f64: 1.0>, input_zero_points = array<i64: 1>,
    output_scale = 0.5 : f64, output_zero_point = 2 : i64, axis = 0 : i64, rounding = "fixed64_up", multiplier = "f64"
  } : (tensor<4xi8>) -> tensor<4xi8>
  return %0 : tensor<4xi8>
}
