"""Constant and run-time operands in the form that kernels read."""
