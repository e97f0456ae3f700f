"""qnn -> linalg -> vector -> x86 -> llvm: how a network becomes machine code, in a folder for each step.

  qnn_to_linalg     ops become kernels, written as text, and calls of them over planned memory
  linalg_to_vector  micro-kernels are tiled and vectorized
  threads           calls and their loops are divided among threads
  vector_to_x86     vector ops become instructions of the target
  x86_to_llvm       the rest becomes the LLVM dialect

All use `ir` (walks, views, effects), `instructions` and `cost` (tile sizes); `pipeline` puts the steps in order.
"""
