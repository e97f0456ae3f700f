"""Extern functions, which other libraries implement: their records, which describe the ops that they compute."""
