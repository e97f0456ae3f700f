"""Kernels measured in several variants on this machine, so that a network gets the fastest of each."""
