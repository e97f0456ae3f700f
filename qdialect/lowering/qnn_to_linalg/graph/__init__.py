"""Lowers a whole network: decides which ops share a kernel, and where each tensor lives."""
