// RUN: %qopt %s --split-input-file --verify-diagnostics

func.func @clip_c1(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.clip' op min and max must be ordered and in [-128, 127], but got 3 and 2}}
  %y = "qnn.clip"(%input) {min = 3 : i64, max = 2 : i64} : (tensor<2x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @clip_c1_range(%input: tensor<2x3xui8>) {
  // expected-error @+1 {{'qnn.clip' op min and max must be ordered and in [0, 255], but got -3 and 100}}
  %y = "qnn.clip"(%input) {min = -3 : i64, max = 100 : i64} : (tensor<2x3xui8>) -> tensor<2x3xui8>
  return
}

// -----

func.func @clip_c1_extremes(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.clip' op min and max must be ordered and in [-128, 127], but got -9223372036854775808 and 9223372036854775807}}
  %y = "qnn.clip"(%input) {
    min = -9223372036854775808 : i64, max = 9223372036854775807 : i64
  } : (tensor<2x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @clip_c2(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.clip' op result element type must be i8, but got ui8}}
  %y = "qnn.clip"(%input) {min = 0 : i64, max = 100 : i64} : (tensor<2x3xi8>) -> tensor<2x3xui8>
  return
}
