"""Reads and builds IR of the phases `vector` and `x86`: effects on memory, views of buffers, loops, small builders."""
