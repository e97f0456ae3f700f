"""Requantization and addition in integers, with the proofs that they have the bits of the op's arithmetic."""
