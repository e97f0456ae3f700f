"""linalg -> vector: kernels become loops over vectors of the sizes that their tiles have."""
