"""The lowered network: kernels as text of the linalg level, their calls, and the memory that they share."""
