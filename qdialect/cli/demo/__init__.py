"""A demonstration of the compiler on real layers and on a real network: ``python -m qdialect.cli.demo``."""
