"""Kernels at the linalg level that are no contractions, one family a file."""
