"""Small networks as text, one for each kind of kernel: what the tests of phases lower, print, parse and run."""

_REQUANTIZE = """\
    input_scale = 0.5 : f64, weight_scales = array<f64: 0.25>, input_zero_points = array<i64: 0>,
    output_scale = 2.0 : f64, output_zero_point = -3 : i64, rounding = "fixed64_up", multiplier = "f64", axis = """

CONVOLUTION = f"""\
func.func @main(%x: tensor<1x6x6x4xi8> {{qnn.name = "image"}}) -> (tensor<1x6x6x8xi8> {{qnn.name = "scores"}}) {{
  %w = "qnn.constant"() {{value = dense<3> : tensor<8x3x3x4xi8>}} : () -> tensor<8x3x3x4xi8>
  %0 = "qnn.conv2d"(%x, %w) {{
    input_scale = 0.5 : f64, input_zero_point = 7 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>,
    dilation = array<i64: 1, 1>, groups = 1 : i64
  }} : (tensor<1x6x6x4xi8>, tensor<8x3x3x4xi8>) -> tensor<1x6x6x8xi32> loc("net/conv;1")
  %1 = "qnn.requantize"(%0) {{
{_REQUANTIZE}3 : i64
  }} : (tensor<1x6x6x8xi32>) -> tensor<1x6x6x8xi8> loc("rescale")
  %2 = "qnn.sigmoid"(%1) {{
    input_scale = 2.0 : f64, input_zero_point = -3 : i64, output_scale = 0.00390625 : f64,
    output_zero_point = -128 : i64, entries = "half_away_divide", nan = "max"
  }} : (tensor<1x6x6x8xi8>) -> tensor<1x6x6x8xi8> loc("activation")
  return %2 : tensor<1x6x6x8xi8>
}}
"""

DEPTHWISE = f"""\
func.func @main(%x: tensor<1x6x6x8xui8>) -> tensor<1x6x6x8xi8> {{
  %w = "qnn.constant"() {{value = dense<-5> : tensor<8x3x3x1xi8>}} : () -> tensor<8x3x3x1xi8>
  %0 = "qnn.conv2d"(%x, %w) {{
    input_scale = 0.5 : f64, input_zero_point = 7 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>,
    dilation = array<i64: 1, 1>, groups = 8 : i64
  }} : (tensor<1x6x6x8xui8>, tensor<8x3x3x1xi8>) -> tensor<1x6x6x8xi32>
  %1 = "qnn.requantize"(%0) {{
{_REQUANTIZE}3 : i64
  }} : (tensor<1x6x6x8xi32>) -> tensor<1x6x6x8xi8>
  return %1 : tensor<1x6x6x8xi8>
}}
"""

MATMUL = f"""\
func.func @main(%x: tensor<2x5x12xi8>, %w: tensor<2x12x18xi8>) -> tensor<2x5x18xi8> {{
  %0 = "qnn.matmul"(%x, %w) {{
    input_scale = 0.5 : f64, input_zero_point = 3 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>
  }} : (tensor<2x5x12xi8>, tensor<2x12x18xi8>) -> tensor<2x5x18xi32>
  %1 = "qnn.requantize"(%0) {{
{_REQUANTIZE}2 : i64
  }} : (tensor<2x5x18xi32>) -> tensor<2x5x18xi8>
  return %1 : tensor<2x5x18xi8>
}}
"""

SOFTMAX = """\
func.func @main(%x: tensor<3x21xi8>) -> tensor<3x21xi8> {
  %0 = "qnn.softmax"(%x) {
    axis = 1 : i64, input_scale = 0.1 : f64, beta = 1.0 : f64, output_scale = 0.00390625 : f64,
    output_zero_point = -128 : i64, arithmetic = "tflite_fixed"
  } : (tensor<3x21xi8>) -> tensor<3x21xi8>
  return %0 : tensor<3x21xi8>
}
"""

NETWORKS = {"convolution": CONVOLUTION, "depthwise": DEPTHWISE, "matmul": MATMUL, "softmax": SOFTMAX}

DIVISIBLE = CONVOLUTION.replace("1x6x6x", "1x31x16x")
"""A network that is worth dividing among threads."""
