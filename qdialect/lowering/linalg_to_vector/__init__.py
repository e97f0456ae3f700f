"""linalg -> vector: micro-kernels are tiled, fused and vectorized by transform schedules."""
