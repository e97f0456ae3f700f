"""vector -> vector: the calls of a network, and the loops in them, are divided among threads."""

MIN_CYCLES = 4000
"""Cycles from which on a kernel is divided: below, threads lose more on waiting for each other."""
