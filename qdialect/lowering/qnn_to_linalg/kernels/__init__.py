"""Kernels at the linalg level other than contractions, one family a file."""
