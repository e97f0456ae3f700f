"""What the compiler does, shown on real layers and on a real network: ``python -m qdialect.cli.demo``."""
