"""Queries on IR of the phases `vector` and `x86`: effects of ops on memory, views, and loops."""
