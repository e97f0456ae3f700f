"""MLIR for everything above: the bindings, contexts, locations, constants, and texts read and printed."""
