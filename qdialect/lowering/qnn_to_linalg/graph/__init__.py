"""Lowering a whole network: which ops one kernel computes together, and which tensor lives where."""
