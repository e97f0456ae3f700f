"""Compiled networks as files: machine code, constants and a C interface, which need neither Python nor MLIR."""
