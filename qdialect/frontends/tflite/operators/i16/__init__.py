"""Operators of 16-bit activations, whose zero points are 0; one family a file."""
