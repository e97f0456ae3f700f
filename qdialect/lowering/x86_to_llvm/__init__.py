"""x86 -> llvm: upstream's conversions, calls of the OpenMP runtime, and attributes of the functions."""
