"""Kernels at the linalg level, one family a file."""
