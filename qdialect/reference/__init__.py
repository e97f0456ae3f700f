"""What every qnn op means: integer-exact NumPy, one op family a file."""
