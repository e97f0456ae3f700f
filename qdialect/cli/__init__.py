"""The commands: a module and a ``main`` for each, such as `opt` for ``qdialect-opt``."""
