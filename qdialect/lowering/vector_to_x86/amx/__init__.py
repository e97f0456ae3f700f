"""Contractions in the matrix tiles of AMX, and epilogues that are computed between their products."""
