"""x86 -> llvm: the dialect that LLVM compiles, with calls of an OpenMP runtime, and how the code is compiled."""
