"""The frameworks that run what is not compiled: each an optional package, loaded when it is needed."""
