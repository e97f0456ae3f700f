"""Rewrites of `qnn` graphs: one pass a file, the file named after the pass."""
