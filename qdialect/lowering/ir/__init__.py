"""What IR of the phases `vector` and `x86` says: what ops do to memory, what values are views of, and loops."""
