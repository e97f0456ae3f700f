"""Writing kernels as text of the linalg level."""
