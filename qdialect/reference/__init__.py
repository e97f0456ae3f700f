"""The reference semantics of every qnn op: integer-exact NumPy, one op family a file."""
