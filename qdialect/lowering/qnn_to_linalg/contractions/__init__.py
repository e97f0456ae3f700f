"""Kernels of convolutions and matrix products: packed weights, micro-kernels, epilogues."""
