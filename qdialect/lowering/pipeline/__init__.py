"""The phases of the lowering in order, and kernels that are lowered separately."""
