"""A model of a core: the cycles and the memory traffic that a kernel needs at least."""
