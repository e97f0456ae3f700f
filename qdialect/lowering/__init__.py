"""qnn -> linalg -> vector -> x86 -> llvm: how a network becomes machine code; one lowering step a file.

`qnn_to_linalg`, `to_vector`, `to_x86`, `to_threads` and `to_llvm` are the steps, and `passes` has them as passes.  What
they consist of has a package of its own:

  handlers, stages     what each op and each stage of a fused op becomes
  kernels, text        kernels of the linalg level, and how they are written
  rows                 kernels of several ops, block by block of rows
  operands, memory     weights as kernels read them; where tensors live
  requantization       requantization and addition in integers
  tiling               how contractions are cut for a target
  x86, threads         instructions of a target; the division among threads
"""
