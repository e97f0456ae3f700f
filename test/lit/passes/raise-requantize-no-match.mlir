// RUN: %qopt %s --qnn-raise-requantize --explain-matches --verify-diagnostics
// RUN: %qopt %s --qnn-raise-requantize | filecheck %s

// Covers R16: graphs that step where no requantization does, and those whose accumulators others use, stay.

// CHECK-LABEL: func.func @second_use(
// CHECK-NOT: qnn.requantize
// CHECK: math.floor
func.func @second_use(%x: tensor<1x1x1x2xui8>) -> (tensor<1x1x1x2xui8>, tensor<1x1x1x2xi32>) {
  %w = "qnn.constant"() {value = dense<3> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  %acc = "qnn.conv2d"(%x, %w) {
    dilation = array<i64: 1, 1>, groups = 1 : i64, input_scale = 0.25 : f64, input_zero_point = 3 : i64,
    padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>, weight_scales = array<f64: 0.5, 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<1x1x1x2xui8>, tensor<2x1x1x2xi8>) -> tensor<1x1x1x2xi32>
  %m = arith.constant dense<0.25> : tensor<1x1x1x2xf32>
  %h = arith.constant dense<20.5> : tensor<1x1x1x2xf32>
  %lo = arith.constant dense<0> : tensor<1x1x1x2xi32>
  %hi = arith.constant dense<255> : tensor<1x1x1x2xi32>
  %0 = arith.sitofp %acc : tensor<1x1x1x2xi32> to tensor<1x1x1x2xf32>
  %1 = arith.mulf %0, %m : tensor<1x1x1x2xf32>
  %2 = arith.addf %1, %h : tensor<1x1x1x2xf32>
  %3 = math.floor %2 : tensor<1x1x1x2xf32>
  %4 = arith.fptosi %3 : tensor<1x1x1x2xf32> to tensor<1x1x1x2xi32>
  %5 = arith.maxsi %4, %lo : tensor<1x1x1x2xi32>
  %6 = arith.minsi %5, %hi : tensor<1x1x1x2xi32>
  %7 = arith.trunci %6 : tensor<1x1x1x2xi32> to tensor<1x1x1x2xi8>
  // expected-remark @+1 {{[raise-requantize] 'tensor.bitcast' depends on 'arith.minsi', which needs the result of 'qnn.conv2d' alone, but 'func.return' uses it too}}
  %8 = tensor.bitcast %7 : tensor<1x1x1x2xi8> to tensor<1x1x1x2xui8>
  return %8, %acc : tensor<1x1x1x2xui8>, tensor<1x1x1x2xi32>
}

// CHECK-LABEL: func.func @loose_clamp(
// CHECK-NOT: qnn.requantize
// CHECK: math.floor
func.func @loose_clamp(%x: tensor<1x1x1x2xui8>) -> tensor<1x1x1x2xui8> {
  %w = "qnn.constant"() {value = dense<[[[[3, 3]]], [[[-3, -3]]]]> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  %acc = "qnn.conv2d"(%x, %w) {
    dilation = array<i64: 1, 1>, groups = 1 : i64, input_scale = 0.25 : f64, input_zero_point = 3 : i64,
    padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>, weight_scales = array<f64: 0.5, 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<1x1x1x2xui8>, tensor<2x1x1x2xi8>) -> tensor<1x1x1x2xi32>
  %m = arith.constant dense<0.25> : tensor<1x1x1x2xf32>
  %h = arith.constant dense<20.5> : tensor<1x1x1x2xf32>
  %lo = arith.constant dense<-1> : tensor<1x1x1x2xi32>
  %hi = arith.constant dense<255> : tensor<1x1x1x2xi32>
  %0 = arith.sitofp %acc : tensor<1x1x1x2xi32> to tensor<1x1x1x2xf32>
  %1 = arith.mulf %0, %m : tensor<1x1x1x2xf32>
  %2 = arith.addf %1, %h : tensor<1x1x1x2xf32>
  %3 = math.floor %2 : tensor<1x1x1x2xf32>
  %4 = arith.fptosi %3 : tensor<1x1x1x2xf32> to tensor<1x1x1x2xi32>
  %5 = arith.maxsi %4, %lo : tensor<1x1x1x2xi32>
  %6 = arith.minsi %5, %hi : tensor<1x1x1x2xi32>
  %7 = arith.trunci %6 : tensor<1x1x1x2xi32> to tensor<1x1x1x2xi8>
  // expected-remark @+1 {{[raise-requantize] 'tensor.bitcast' depends on 'arith.minsi', which must have 256 values at most, but has 257}}
  %8 = tensor.bitcast %7 : tensor<1x1x1x2xi8> to tensor<1x1x1x2xui8>
  return %8 : tensor<1x1x1x2xui8>
}

// CHECK-LABEL: func.func @falling(
// CHECK-NOT: qnn.requantize
// CHECK: math.floor
func.func @falling(%x: tensor<1x1x1x2xui8>) -> tensor<1x1x1x2xui8> {
  %w = "qnn.constant"() {value = dense<3> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  %acc = "qnn.conv2d"(%x, %w) {
    dilation = array<i64: 1, 1>, groups = 1 : i64, input_scale = 0.25 : f64, input_zero_point = 3 : i64,
    padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>, weight_scales = array<f64: 0.5, 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<1x1x1x2xui8>, tensor<2x1x1x2xi8>) -> tensor<1x1x1x2xi32>
  %m = arith.constant dense<-0.25> : tensor<1x1x1x2xf32>
  %h = arith.constant dense<20.5> : tensor<1x1x1x2xf32>
  %lo = arith.constant dense<0> : tensor<1x1x1x2xi32>
  %hi = arith.constant dense<255> : tensor<1x1x1x2xi32>
  %0 = arith.sitofp %acc : tensor<1x1x1x2xi32> to tensor<1x1x1x2xf32>
  %1 = arith.mulf %0, %m : tensor<1x1x1x2xf32>
  %2 = arith.addf %1, %h : tensor<1x1x1x2xf32>
  %3 = math.floor %2 : tensor<1x1x1x2xf32>
  %4 = arith.fptosi %3 : tensor<1x1x1x2xf32> to tensor<1x1x1x2xi32>
  %5 = arith.maxsi %4, %lo : tensor<1x1x1x2xi32>
  %6 = arith.minsi %5, %hi : tensor<1x1x1x2xi32>
  %7 = arith.trunci %6 : tensor<1x1x1x2xi32> to tensor<1x1x1x2xi8>
  // expected-remark @+1 {{[raise-requantize] 'tensor.bitcast' depends on 'arith.minsi', which must not fall where the numbers it depends on rise}}
  %8 = tensor.bitcast %7 : tensor<1x1x1x2xi8> to tensor<1x1x1x2xui8>
  return %8 : tensor<1x1x1x2xui8>
}

// CHECK-LABEL: func.func @other_rounding(
// CHECK-NOT: qnn.requantize
// CHECK: math.floor
func.func @other_rounding(%x: tensor<1x1x1x2xui8>) -> tensor<1x1x1x2xui8> {
  %w = "qnn.constant"() {value = dense<3> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  %acc = "qnn.conv2d"(%x, %w) {
    dilation = array<i64: 1, 1>, groups = 1 : i64, input_scale = 0.25 : f64, input_zero_point = 3 : i64,
    padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>, weight_scales = array<f64: 0.5, 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<1x1x1x2xui8>, tensor<2x1x1x2xi8>) -> tensor<1x1x1x2xi32>
  %m = arith.constant dense<0.1> : tensor<1x1x1x2xf32>
  %h = arith.constant dense<20.75> : tensor<1x1x1x2xf32>
  %lo = arith.constant dense<0> : tensor<1x1x1x2xi32>
  %hi = arith.constant dense<255> : tensor<1x1x1x2xi32>
  %0 = arith.sitofp %acc : tensor<1x1x1x2xi32> to tensor<1x1x1x2xf32>
  %1 = arith.mulf %0, %m : tensor<1x1x1x2xf32>
  %2 = arith.addf %1, %h : tensor<1x1x1x2xf32>
  %3 = math.floor %2 : tensor<1x1x1x2xf32>
  %4 = arith.fptosi %3 : tensor<1x1x1x2xf32> to tensor<1x1x1x2xi32>
  %5 = arith.maxsi %4, %lo : tensor<1x1x1x2xi32>
  %6 = arith.minsi %5, %hi : tensor<1x1x1x2xi32>
  %7 = arith.trunci %6 : tensor<1x1x1x2xi32> to tensor<1x1x1x2xi8>
  // expected-remark @+1 {{[raise-requantize] 'tensor.bitcast' depends on 'math.floor', which must round as a requantization does, but no multiplier with a zero point in [0, 255] gives its 153 thresholds}}
  %8 = tensor.bitcast %7 : tensor<1x1x1x2xi8> to tensor<1x1x1x2xui8>
  return %8 : tensor<1x1x1x2xui8>
}

// CHECK-LABEL: func.func @no_step(
// CHECK-NOT: qnn.requantize
// CHECK: math.floor
func.func @no_step(%x: tensor<1x1x1x2xui8>) -> tensor<1x1x1x2xui8> {
  %w = "qnn.constant"() {value = dense<3> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  %acc = "qnn.conv2d"(%x, %w) {
    dilation = array<i64: 1, 1>, groups = 1 : i64, input_scale = 0.25 : f64, input_zero_point = 3 : i64,
    padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>, weight_scales = array<f64: 0.5, 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<1x1x1x2xui8>, tensor<2x1x1x2xi8>) -> tensor<1x1x1x2xi32>
  %m = arith.constant dense<0.25> : tensor<1x1x1x2xf32>
  %h = arith.constant dense<20.5> : tensor<1x1x1x2xf32>
  %lo = arith.constant dense<5> : tensor<1x1x1x2xi32>
  %hi = arith.constant dense<5> : tensor<1x1x1x2xi32>
  %0 = arith.sitofp %acc : tensor<1x1x1x2xi32> to tensor<1x1x1x2xf32>
  %1 = arith.mulf %0, %m : tensor<1x1x1x2xf32>
  %2 = arith.addf %1, %h : tensor<1x1x1x2xf32>
  %3 = math.floor %2 : tensor<1x1x1x2xf32>
  %4 = arith.fptosi %3 : tensor<1x1x1x2xf32> to tensor<1x1x1x2xi32>
  %5 = arith.maxsi %4, %lo : tensor<1x1x1x2xi32>
  %6 = arith.minsi %5, %hi : tensor<1x1x1x2xi32>
  %7 = arith.trunci %6 : tensor<1x1x1x2xi32> to tensor<1x1x1x2xi8>
  // expected-remark @+1 {{[raise-requantize] 'tensor.bitcast' depends on 'arith.minsi', which is 5 for every number it depends on}}
  %8 = tensor.bitcast %7 : tensor<1x1x1x2xi8> to tensor<1x1x1x2xui8>
  return %8 : tensor<1x1x1x2xui8>
}

// CHECK-LABEL: func.func @undefined_cast(
// CHECK-NOT: qnn.requantize
// CHECK: math.floor
func.func @undefined_cast(%x: tensor<1x1x1x2xui8>) -> tensor<1x1x1x2xui8> {
  %w = "qnn.constant"() {value = dense<3> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  %acc = "qnn.conv2d"(%x, %w) {
    dilation = array<i64: 1, 1>, groups = 1 : i64, input_scale = 0.25 : f64, input_zero_point = 3 : i64,
    padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>, weight_scales = array<f64: 0.5, 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<1x1x1x2xui8>, tensor<2x1x1x2xi8>) -> tensor<1x1x1x2xi32>
  %m = arith.constant dense<1.0e+8> : tensor<1x1x1x2xf32>
  %h = arith.constant dense<20.5> : tensor<1x1x1x2xf32>
  %lo = arith.constant dense<0> : tensor<1x1x1x2xi32>
  %hi = arith.constant dense<255> : tensor<1x1x1x2xi32>
  %0 = arith.sitofp %acc : tensor<1x1x1x2xi32> to tensor<1x1x1x2xf32>
  %1 = arith.mulf %0, %m : tensor<1x1x1x2xf32>
  %2 = arith.addf %1, %h : tensor<1x1x1x2xf32>
  %3 = math.floor %2 : tensor<1x1x1x2xf32>
  %4 = arith.fptosi %3 : tensor<1x1x1x2xf32> to tensor<1x1x1x2xi32>
  %5 = arith.maxsi %4, %lo : tensor<1x1x1x2xi32>
  %6 = arith.minsi %5, %hi : tensor<1x1x1x2xi32>
  %7 = arith.trunci %6 : tensor<1x1x1x2xi32> to tensor<1x1x1x2xi8>
  // expected-remark @+1 {{[raise-requantize] 'tensor.bitcast' depends on 'arith.minsi', which has no defined value for every number it depends on}}
  %8 = tensor.bitcast %7 : tensor<1x1x1x2xi8> to tensor<1x1x1x2xui8>
  return %8 : tensor<1x1x1x2xui8>
}

// CHECK-LABEL: func.func @run_time_weight(
// CHECK-NOT: qnn.requantize
// CHECK: math.floor
func.func @run_time_weight(%x: tensor<1x1x1x2xui8>, %w: tensor<2x1x1x2xi8>) -> tensor<1x1x1x2xui8> {
  %acc = "qnn.conv2d"(%x, %w) {
    dilation = array<i64: 1, 1>, groups = 1 : i64, input_scale = 0.25 : f64, input_zero_point = 3 : i64,
    padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>, weight_scales = array<f64: 0.5, 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<1x1x1x2xui8>, tensor<2x1x1x2xi8>) -> tensor<1x1x1x2xi32>
  %m = arith.constant dense<0.25> : tensor<1x1x1x2xf32>
  %h = arith.constant dense<20.5> : tensor<1x1x1x2xf32>
  %lo = arith.constant dense<0> : tensor<1x1x1x2xi32>
  %hi = arith.constant dense<255> : tensor<1x1x1x2xi32>
  %0 = arith.sitofp %acc : tensor<1x1x1x2xi32> to tensor<1x1x1x2xf32>
  %1 = arith.mulf %0, %m : tensor<1x1x1x2xf32>
  %2 = arith.addf %1, %h : tensor<1x1x1x2xf32>
  %3 = math.floor %2 : tensor<1x1x1x2xf32>
  %4 = arith.fptosi %3 : tensor<1x1x1x2xf32> to tensor<1x1x1x2xi32>
  %5 = arith.maxsi %4, %lo : tensor<1x1x1x2xi32>
  %6 = arith.minsi %5, %hi : tensor<1x1x1x2xi32>
  %7 = arith.trunci %6 : tensor<1x1x1x2xi32> to tensor<1x1x1x2xi8>
  // expected-remark @+1 {{[raise-requantize] 'tensor.bitcast' depends on 'arith.minsi', which needs a contraction with a constant weight}}
  %8 = tensor.bitcast %7 : tensor<1x1x1x2xi8> to tensor<1x1x1x2xui8>
  return %8 : tensor<1x1x1x2xui8>
}

// CHECK-LABEL: func.func @wide_accumulators(
// CHECK-NOT: qnn.requantize
// CHECK: math.floor
func.func @wide_accumulators(%x: tensor<1x1x1x2xui8>) -> tensor<1x1x1x2xui8> {
  %w = "qnn.constant"() {value = dense<3> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  %b = "qnn.constant"() {value = dense<2147483647> : tensor<2xi32>} : () -> tensor<2xi32>
  %acc = "qnn.conv2d"(%x, %w, %b) {
    dilation = array<i64: 1, 1>, groups = 1 : i64, input_scale = 0.25 : f64, input_zero_point = 3 : i64,
    padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>, weight_scales = array<f64: 0.5, 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<1x1x1x2xui8>, tensor<2x1x1x2xi8>, tensor<2xi32>) -> tensor<1x1x1x2xi32>
  %m = arith.constant dense<0.25> : tensor<1x1x1x2xf32>
  %h = arith.constant dense<20.5> : tensor<1x1x1x2xf32>
  %lo = arith.constant dense<0> : tensor<1x1x1x2xi32>
  %hi = arith.constant dense<255> : tensor<1x1x1x2xi32>
  %0 = arith.sitofp %acc : tensor<1x1x1x2xi32> to tensor<1x1x1x2xf32>
  %1 = arith.mulf %0, %m : tensor<1x1x1x2xf32>
  %2 = arith.addf %1, %h : tensor<1x1x1x2xf32>
  %3 = math.floor %2 : tensor<1x1x1x2xf32>
  %4 = arith.fptosi %3 : tensor<1x1x1x2xf32> to tensor<1x1x1x2xi32>
  %5 = arith.maxsi %4, %lo : tensor<1x1x1x2xi32>
  %6 = arith.minsi %5, %hi : tensor<1x1x1x2xi32>
  %7 = arith.trunci %6 : tensor<1x1x1x2xi32> to tensor<1x1x1x2xi8>
  // expected-remark @+1 {{[raise-requantize] 'tensor.bitcast' depends on 'arith.minsi', which needs accumulators that 32 bits hold, but they may be in [2147483629, 2147485159]}}
  %8 = tensor.bitcast %7 : tensor<1x1x1x2xi8> to tensor<1x1x1x2xui8>
  return %8 : tensor<1x1x1x2xui8>
}

// CHECK-LABEL: func.func @run_time_factor(
// CHECK-NOT: qnn.requantize
// CHECK: math.floor
func.func @run_time_factor(%x: tensor<1x1x1x2xui8>, %m: tensor<1x1x1x2xf32>) -> tensor<1x1x1x2xui8> {
  %w = "qnn.constant"() {value = dense<3> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  %acc = "qnn.conv2d"(%x, %w) {
    dilation = array<i64: 1, 1>, groups = 1 : i64, input_scale = 0.25 : f64, input_zero_point = 3 : i64,
    padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>, weight_scales = array<f64: 0.5, 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<1x1x1x2xui8>, tensor<2x1x1x2xi8>) -> tensor<1x1x1x2xi32>
  %h = arith.constant dense<20.5> : tensor<1x1x1x2xf32>
  %lo = arith.constant dense<0> : tensor<1x1x1x2xi32>
  %hi = arith.constant dense<255> : tensor<1x1x1x2xi32>
  %0 = arith.sitofp %acc : tensor<1x1x1x2xi32> to tensor<1x1x1x2xf32>
  %1 = arith.mulf %0, %m : tensor<1x1x1x2xf32>
  %2 = arith.addf %1, %h : tensor<1x1x1x2xf32>
  %3 = math.floor %2 : tensor<1x1x1x2xf32>
  %4 = arith.fptosi %3 : tensor<1x1x1x2xf32> to tensor<1x1x1x2xi32>
  %5 = arith.maxsi %4, %lo : tensor<1x1x1x2xi32>
  %6 = arith.minsi %5, %hi : tensor<1x1x1x2xi32>
  %7 = arith.trunci %6 : tensor<1x1x1x2xi32> to tensor<1x1x1x2xi8>
  // expected-remark @+1 {{[raise-requantize] 'tensor.bitcast' must depend on one tensor, constants aside, but depends on two or more}}
  %8 = tensor.bitcast %7 : tensor<1x1x1x2xi8> to tensor<1x1x1x2xui8>
  return %8 : tensor<1x1x1x2xui8>
}

// CHECK-LABEL: func.func @constant_by_row(
// CHECK-NOT: qnn.requantize
// CHECK: math.floor
func.func @constant_by_row(%x: tensor<1x2x1x2xui8>) -> tensor<1x2x1x2xui8> {
  %w = "qnn.constant"() {value = dense<3> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  %acc = "qnn.conv2d"(%x, %w) {
    dilation = array<i64: 1, 1>, groups = 1 : i64, input_scale = 0.25 : f64, input_zero_point = 3 : i64,
    padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>, weight_scales = array<f64: 0.5, 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<1x2x1x2xui8>, tensor<2x1x1x2xi8>) -> tensor<1x2x1x2xi32>
  %m = arith.constant dense<[[[[0.25, 0.25]], [[0.5, 0.5]]]]> : tensor<1x2x1x2xf32>
  %h = arith.constant dense<20.5> : tensor<1x2x1x2xf32>
  %lo = arith.constant dense<0> : tensor<1x2x1x2xi32>
  %hi = arith.constant dense<255> : tensor<1x2x1x2xi32>
  %0 = arith.sitofp %acc : tensor<1x2x1x2xi32> to tensor<1x2x1x2xf32>
  %1 = arith.mulf %0, %m : tensor<1x2x1x2xf32>
  %2 = arith.addf %1, %h : tensor<1x2x1x2xf32>
  %3 = math.floor %2 : tensor<1x2x1x2xf32>
  %4 = arith.fptosi %3 : tensor<1x2x1x2xf32> to tensor<1x2x1x2xi32>
  %5 = arith.maxsi %4, %lo : tensor<1x2x1x2xi32>
  %6 = arith.minsi %5, %hi : tensor<1x2x1x2xi32>
  %7 = arith.trunci %6 : tensor<1x2x1x2xi32> to tensor<1x2x1x2xi8>
  // expected-remark @+1 {{[raise-requantize] 'tensor.bitcast' needs constants that depend on the last dimension alone}}
  %8 = tensor.bitcast %7 : tensor<1x2x1x2xi8> to tensor<1x2x1x2xui8>
  return %8 : tensor<1x2x1x2xui8>
}

// CHECK-LABEL: func.func @remainder_of_many(
// CHECK-NOT: qnn.requantize
// CHECK: arith.remsi
func.func @remainder_of_many(%x: tensor<1x1x1x2xi32>) -> tensor<1x1x1x2xi8> {
  %m = arith.constant dense<7> : tensor<1x1x1x2xi32>
  %0 = arith.remsi %x, %m : tensor<1x1x1x2xi32>
  // expected-remark @+1 {{[raise-requantize] 'arith.trunci' depends on 'arith.remsi', which cannot be shown to be monotonic: 'arith.remsi' may rise and fall, and 4294967296 numbers are too many to try}}
  %8 = arith.trunci %0 : tensor<1x1x1x2xi32> to tensor<1x1x1x2xi8>
  return %8 : tensor<1x1x1x2xi8>
}
