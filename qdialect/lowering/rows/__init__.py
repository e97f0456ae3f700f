"""Kernels of several ops that are computed block by block of rows."""
