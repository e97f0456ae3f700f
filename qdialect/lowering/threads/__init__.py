"""Kernels and networks divided among threads."""
