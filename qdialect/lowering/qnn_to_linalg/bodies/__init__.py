"""The arithmetic of one element as scalar bodies of `linalg.generic`, proved equal to the op's own."""
