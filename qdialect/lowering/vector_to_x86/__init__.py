"""vector -> x86: patterns that put one instruction where a vector op means just that."""
