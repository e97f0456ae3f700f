// RUN: %qopt %s --qnn-fuse-dynamic-epilogue --explain-matches --verify-diagnostics

func.func @constant_scale(%data: tensor<3x2xui8>, %scale: tensor<f32>) -> tensor<3x2xf32> {
  %w = "qnn.constant"() {value = dense<1> : tensor<2x2xi8>} : () -> tensor<2x2xi8>
  %acc = "qnn.dense"(%data, %w) {
    input_scale = 1.0 : f64, input_zero_point = 0 : i64, weight_scales = array<f64: 1.0>
  } : (tensor<3x2xui8>, tensor<2x2xi8>) -> tensor<3x2xi32>
  %real = "qnn.dequantize"(%acc) {scales = array<f64: 1.0>, zero_points = array<i64: 0>} : (tensor<3x2xi32>) -> tensor<3x2xf32>
  %f = "qnn.constant"() {value = dense<0.5> : tensor<3x2xf32>} : () -> tensor<3x2xf32>
  // expected-remark @+1 {{[fuse-dynamic-scale] 'arith.mulf' must multiply by what is known at run time}}
  %y = arith.mulf %real, %f : tensor<3x2xf32>
  return %y : tensor<3x2xf32>
}

func.func @scaled_before(%data: tensor<3x2xui8>, %scale: tensor<f32>) -> tensor<3x2xf32> {
  %w = "qnn.constant"() {value = dense<1> : tensor<2x2xi8>} : () -> tensor<2x2xi8>
  %acc = "qnn.dense"(%data, %w) {
    input_scale = 1.0 : f64, input_zero_point = 0 : i64, weight_scales = array<f64: 1.0>
  } : (tensor<3x2xui8>, tensor<2x2xi8>) -> tensor<3x2xi32>
  %real = "qnn.dequantize"(%acc) {scales = array<f64: 2.0>, zero_points = array<i64: 0>} : (tensor<3x2xi32>) -> tensor<3x2xf32>
  %f = "qnn.broadcast"(%scale) {shape = array<i64: 3, 2>} : (tensor<f32>) -> tensor<3x2xf32>
  // expected-remark @+1 {{[fuse-dynamic-scale] 'arith.mulf' must dequantize accumulators with scale 1 and zero point 0}}
  %y = arith.mulf %real, %f : tensor<3x2xf32>
  return %y : tensor<3x2xf32>
}

func.func @integer_bias(%data: tensor<3x2xui8>, %scale: tensor<f32>) -> tensor<3x2xf32> {
  %w = "qnn.constant"() {value = dense<1> : tensor<2x2xi8>} : () -> tensor<2x2xi8>
  %b = "qnn.constant"() {value = dense<5> : tensor<2xi32>} : () -> tensor<2xi32>
  %acc = "qnn.dense"(%data, %w, %b) {
    input_scale = 1.0 : f64, input_zero_point = 0 : i64, weight_scales = array<f64: 1.0>
  } : (tensor<3x2xui8>, tensor<2x2xi8>, tensor<2xi32>) -> tensor<3x2xi32>
  %real = "qnn.dequantize"(%acc) {scales = array<f64: 1.0>, zero_points = array<i64: 0>} : (tensor<3x2xi32>) -> tensor<3x2xf32>
  %f = "qnn.broadcast"(%scale) {shape = array<i64: 3, 2>} : (tensor<f32>) -> tensor<3x2xf32>
  // expected-remark @+1 {{[fuse-dynamic-scale] 'arith.mulf' must scale accumulators without bias}}
  %y = arith.mulf %real, %f : tensor<3x2xf32>
  return %y : tensor<3x2xf32>
}

func.func @two_zero_points(%data: tensor<3x2xui8>, %scale: tensor<f32>, %point: tensor<ui8>) -> tensor<3x2xf32> {
  %w = "qnn.constant"() {value = dense<1> : tensor<2x2xi8>} : () -> tensor<2x2xi8>
  %acc = "qnn.dense"(%data, %w) {
    input_scale = 1.0 : f64, input_zero_point = 4 : i64, weight_scales = array<f64: 1.0>
  } : (tensor<3x2xui8>, tensor<2x2xi8>) -> tensor<3x2xi32>
  %p0 = "qnn.constant"() {value = dense<2> : tensor<2xi32>} : () -> tensor<2xi32>
  %p1 = tensor.bitcast %point : tensor<ui8> to tensor<i8>
  %p2 = arith.extui %p1 : tensor<i8> to tensor<i32>
  %p3 = "qnn.broadcast"(%p2) {shape = array<i64: 2>} : (tensor<i32>) -> tensor<2xi32>
  %p4 = arith.muli %p0, %p3 : tensor<2xi32>
  %p5 = "qnn.broadcast"(%p4) {shape = array<i64: 3, 2>} : (tensor<2xi32>) -> tensor<3x2xi32>
  %p6 = arith.subi %acc, %p5 : tensor<3x2xi32>
  %real = "qnn.dequantize"(%p6) {scales = array<f64: 1.0>, zero_points = array<i64: 0>} : (tensor<3x2xi32>) -> tensor<3x2xf32>
  %f = "qnn.broadcast"(%scale) {shape = array<i64: 3, 2>} : (tensor<f32>) -> tensor<3x2xf32>
  // expected-remark @+1 {{[fuse-dynamic-scale] 'arith.mulf' must have input_zero_point 0 if there is another one at run time, but got 4}}
  %y = arith.mulf %real, %f : tensor<3x2xf32>
  return %y : tensor<3x2xf32>
}

func.func @run_time_weight(%data: tensor<3x2xui8>, %scale: tensor<f32>, %w: tensor<2x2xi8>) -> tensor<3x2xf32> {
  %acc = "qnn.dense"(%data, %w) {
    input_scale = 1.0 : f64, input_zero_point = 0 : i64, weight_scales = array<f64: 1.0>
  } : (tensor<3x2xui8>, tensor<2x2xi8>) -> tensor<3x2xi32>
  %real = "qnn.dequantize"(%acc) {scales = array<f64: 1.0>, zero_points = array<i64: 0>} : (tensor<3x2xi32>) -> tensor<3x2xf32>
  %f = "qnn.broadcast"(%scale) {shape = array<i64: 3, 2>} : (tensor<f32>) -> tensor<3x2xf32>
  // expected-remark @+1 {{[fuse-dynamic-scale] 'arith.mulf' needs a constant weight}}
  %y = arith.mulf %real, %f : tensor<3x2xf32>
  return %y : tensor<3x2xf32>
}

func.func @second_use(%data: tensor<3x2xui8>, %scale: tensor<f32>) -> (tensor<3x2xf32>, tensor<3x2xi32>) {
  %w = "qnn.constant"() {value = dense<1> : tensor<2x2xi8>} : () -> tensor<2x2xi8>
  %acc = "qnn.dense"(%data, %w) {
    input_scale = 1.0 : f64, input_zero_point = 0 : i64, weight_scales = array<f64: 1.0>
  } : (tensor<3x2xui8>, tensor<2x2xi8>) -> tensor<3x2xi32>
  %real = "qnn.dequantize"(%acc) {scales = array<f64: 1.0>, zero_points = array<i64: 0>} : (tensor<3x2xi32>) -> tensor<3x2xf32>
  %f = "qnn.broadcast"(%scale) {shape = array<i64: 3, 2>} : (tensor<f32>) -> tensor<3x2xf32>
  // expected-remark @+1 {{[fuse-dynamic-scale] 'arith.mulf' needs the result of 'qnn.dense' alone, but it has 2 uses}}
  %y = arith.mulf %real, %f : tensor<3x2xf32>
  return %y, %acc : tensor<3x2xf32>, tensor<3x2xi32>
}

func.func @full_scale(%data: tensor<3x2xui8>, %scale: tensor<f32>, %f: tensor<3x2xf32>) -> tensor<3x2xf32> {
  %w = "qnn.constant"() {value = dense<1> : tensor<2x2xi8>} : () -> tensor<2x2xi8>
  %acc = "qnn.dense"(%data, %w) {
    input_scale = 1.0 : f64, input_zero_point = 0 : i64, weight_scales = array<f64: 1.0>
  } : (tensor<3x2xui8>, tensor<2x2xi8>) -> tensor<3x2xi32>
  %real = "qnn.dequantize"(%acc) {scales = array<f64: 1.0>, zero_points = array<i64: 0>} : (tensor<3x2xi32>) -> tensor<3x2xf32>
  // expected-remark @+1 {{[fuse-dynamic-scale] 'arith.mulf' must multiply by one number or one of each row, times constants of the channels}}
  %y = arith.mulf %real, %f : tensor<3x2xf32>
  return %y : tensor<3x2xf32>
}

func.func @padding(%data: tensor<1x2x2x2xui8>, %scale: tensor<f32>) -> tensor<1x4x4x2xf32> {
  %w = "qnn.constant"() {value = dense<1> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  %acc = "qnn.conv2d"(%data, %w) {
    input_scale = 1.0 : f64, input_zero_point = 0 : i64, padding = array<i64: 1, 1, 1, 1>,
    weight_scales = array<f64: 1.0>
  } : (tensor<1x2x2x2xui8>, tensor<2x1x1x2xi8>) -> tensor<1x4x4x2xi32>
  %real = "qnn.dequantize"(%acc) {scales = array<f64: 1.0>, zero_points = array<i64: 0>} : (tensor<1x4x4x2xi32>) -> tensor<1x4x4x2xf32>
  %f = "qnn.broadcast"(%scale) {shape = array<i64: 1, 4, 4, 2>} : (tensor<f32>) -> tensor<1x4x4x2xf32>
  // expected-remark @+1 {{[fuse-dynamic-scale] 'arith.mulf' must have a convolution without padding, but got [1, 1, 1, 1]}}
  %y = arith.mulf %real, %f : tensor<1x4x4x2xf32>
  return %y : tensor<1x4x4x2xf32>
}

func.func @run_time_bias(
  %data: tensor<3x2xui8>, %scale: tensor<f32>, %point: tensor<ui8>, %other: tensor<3x2xf32>
) -> tensor<3x2xf32> {
  %w = "qnn.constant"() {value = dense<1> : tensor<2x2xi8>} : () -> tensor<2x2xi8>
  %acc = "qnn.dynamic_dense"(%data, %w, %scale, %point)
    : (tensor<3x2xui8>, tensor<2x2xi8>, tensor<f32>, tensor<ui8>) -> tensor<3x2xf32>
  // expected-remark @+1 {{[fuse-dynamic-bias] 'arith.addf' must add finite constants that depend on the channel alone}}
  %y = arith.addf %acc, %other : tensor<3x2xf32>
  return %y : tensor<3x2xf32>
}

func.func @second_bias(
  %data: tensor<3x2xui8>, %scale: tensor<f32>, %point: tensor<ui8>
) -> tensor<3x2xf32> {
  %w = "qnn.constant"() {value = dense<1> : tensor<2x2xi8>} : () -> tensor<2x2xi8>
  %other = "qnn.constant"() {value = dense<1.0> : tensor<3x2xf32>} : () -> tensor<3x2xf32>
  %b = "qnn.constant"() {value = dense<1.0> : tensor<2xf32>} : () -> tensor<2xf32>
  %acc = "qnn.dynamic_dense"(%data, %w, %scale, %point, %b)
    : (tensor<3x2xui8>, tensor<2x2xi8>, tensor<f32>, tensor<ui8>, tensor<2xf32>) -> tensor<3x2xf32>
  // expected-remark @+1 {{[fuse-dynamic-bias] 'arith.addf' must add to a product without bias}}
  %y = arith.addf %acc, %other : tensor<3x2xf32>
  return %y : tensor<3x2xf32>
}

func.func @second_use_of_the_product(
  %data: tensor<3x2xui8>, %scale: tensor<f32>, %point: tensor<ui8>
) -> (tensor<3x2xf32>, tensor<3x2xf32>) {
  %w = "qnn.constant"() {value = dense<1> : tensor<2x2xi8>} : () -> tensor<2x2xi8>
  %other = "qnn.constant"() {value = dense<1.0> : tensor<3x2xf32>} : () -> tensor<3x2xf32>
  %acc = "qnn.dynamic_dense"(%data, %w, %scale, %point)
    : (tensor<3x2xui8>, tensor<2x2xi8>, tensor<f32>, tensor<ui8>) -> tensor<3x2xf32>
  // expected-remark @+1 {{[fuse-dynamic-bias] 'arith.addf' needs the result of 'qnn.dynamic_dense' alone, but it has 2 uses}}
  %y = arith.addf %acc, %other : tensor<3x2xf32>
  return %y, %acc : tensor<3x2xf32>, tensor<3x2xf32>
}

func.func @bias_after_an_activation(
  %data: tensor<3x2xui8>, %scale: tensor<f32>, %point: tensor<ui8>
) -> tensor<3x2xf32> {
  %w = "qnn.constant"() {value = dense<1> : tensor<2x2xi8>} : () -> tensor<2x2xi8>
  %other = "qnn.constant"() {value = dense<1.0> : tensor<3x2xf32>} : () -> tensor<3x2xf32>
  %acc = "qnn.dynamic_dense"(%data, %w, %scale, %point) {activation = "relu"}
    : (tensor<3x2xui8>, tensor<2x2xi8>, tensor<f32>, tensor<ui8>) -> tensor<3x2xf32>
  // expected-remark @+1 {{[fuse-dynamic-bias] 'arith.addf' must add to a product without activation}}
  %y = arith.addf %acc, %other : tensor<3x2xf32>
  return %y : tensor<3x2xf32>
}

func.func @second_activation(
  %data: tensor<3x2xui8>, %scale: tensor<f32>, %point: tensor<ui8>
) -> tensor<3x2xf32> {
  %w = "qnn.constant"() {value = dense<1> : tensor<2x2xi8>} : () -> tensor<2x2xi8>
  %acc = "qnn.dynamic_dense"(%data, %w, %scale, %point) {activation = "tanh"}
    : (tensor<3x2xui8>, tensor<2x2xi8>, tensor<f32>, tensor<ui8>) -> tensor<3x2xf32>
  // expected-remark @+1 {{[fuse-dynamic-activation] 'math.tanh' must be of a product without activation}}
  %y = math.tanh %acc : tensor<3x2xf32>
  return %y : tensor<3x2xf32>
}

func.func @second_use_below_an_activation(
  %data: tensor<3x2xui8>, %scale: tensor<f32>, %point: tensor<ui8>
) -> (tensor<3x2xf32>, tensor<3x2xf32>) {
  %w = "qnn.constant"() {value = dense<1> : tensor<2x2xi8>} : () -> tensor<2x2xi8>
  %acc = "qnn.dynamic_dense"(%data, %w, %scale, %point)
    : (tensor<3x2xui8>, tensor<2x2xi8>, tensor<f32>, tensor<ui8>) -> tensor<3x2xf32>
  // expected-remark @+1 {{[fuse-dynamic-activation] 'math.tanh' must use the ops of its tanh alone, but another op uses one of them}}
  %y = math.tanh %acc : tensor<3x2xf32>
  return %y, %acc : tensor<3x2xf32>, tensor<3x2xf32>
}
