// RUN: %qopt %s --split-input-file --verify-diagnostics

func.func @interpolated_lut_c1(%x: tensor<7xi32>) {
  // expected-error @+1 {{'qnn.interpolated_lut' op fraction must be in [0, 16], but got 17}}
  %y = "qnn.interpolated_lut"(%x) {
    bases = array<i64: 0>, fraction = 17 : i64, slopes = array<i64: 4>
  } : (tensor<7xi32>) -> tensor<7xi32>
  return
}

// -----

func.func @interpolated_lut_c2(%x: tensor<7xi32>) {
  // expected-error @+1 {{'qnn.interpolated_lut' op slopes must have as many entries as bases, at least 1, but got 1 and 2}}
  %y = "qnn.interpolated_lut"(%x) {
    bases = array<i64: 0, 4>, fraction = 4 : i64, slopes = array<i64: 4>
  } : (tensor<7xi32>) -> tensor<7xi32>
  return
}

// -----

func.func @interpolated_lut_c3(%x: tensor<7xi32>) {
  // expected-error @+1 {{'qnn.interpolated_lut' op bases and slopes must fit 32 bits, but got 2147483648}}
  %y = "qnn.interpolated_lut"(%x) {
    bases = array<i64: 2147483648>, fraction = 4 : i64, slopes = array<i64: 4>
  } : (tensor<7xi32>) -> tensor<7xi32>
  return
}
