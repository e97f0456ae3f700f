// RUN: %qopt --print-targets | filecheck %s --check-prefix=LIST
// RUN: %qopt --explain-strategy --mcpu=haswell --mattr=+avxvnni,-fma | filecheck %s --check-prefix=VNNI
// RUN: %qopt --explain-strategy --mcpu=haswell | filecheck %s --check-prefix=WORDS
// RUN: %qopt --explain-strategy --mcpu=emeraldrapids | filecheck %s --check-prefix=TILES
// RUN: %qopt --explain-strategy --target=generic | filecheck %s --check-prefix=GENERIC
// RUN: not %qopt --explain-strategy --mcpu=haswell --mattr=avxvnni 2>&1 | filecheck %s --check-prefix=SIGN
// RUN: %qopt %s --compile-to=x86 --mcpu=haswell | filecheck %s --check-prefix=NAME

// LIST: target kind of code
// LIST: x86-64-v3 avx2
// LIST: haswell avx2
// LIST: sapphirerapids amxint8
// LIST: graniterapids amxint8
// LIST: alderlake avxvnni{{$}}
// LIST: arrowlake avxvnniint8
// LIST: znver4 avx512bf16
// LIST: host is

// VNNI: haswell,+avxvnni,-fma: code for avxvnni
// VNNI: rows x 2 vectors
// WORDS: haswell: code for avx2
// WORDS: words, weights in L2, below 65536 bytes
// WORDS: 2 rows x 4 vectors: 16.0 cycles for 8 sums, 2.00 each, bound by products (products 16.0, loads 5.0, weights 8.0
// WORDS: stored words, weights in L2, below 65536 bytes
// WORDS: 6 rows x 2 vectors: 24.0 cycles for 12 sums, 2.00 each, bound by products (products 24.0, loads 8.0, weights 4.0
// WORDS: pairs, weights in L2, below 65536 bytes
// WORDS: 2 rows x 4 vectors: 16.0 cycles for 8 sums, 2.00 each, bound by products (products 16.0, loads 3.0, weights 4.0
// WORDS: floats, weights in L2
// WORDS: 6 rows x 2 vectors: {{.*}} bound by products
// TILES: emeraldrapids: code for amxint8
// TILES: rows x 4 vectors
// TILES: matrix tiles, 32 rows x 2 vectors, for each 64 taps
// TILES: 64.0 cycles, dot products 512.0 (products 64.0, loads 32.0)
// GENERIC: generic: code for generic
// SIGN: error: feature must be '+' or '-' and one of sse3, {{.*}}, but got 'avxvnni'
// NAME: qnn.target = "haswell"
func.func @main(%x: tensor<4xui8>) -> tensor<4xui8> {
  return %x : tensor<4xui8>
}
