"""Measures compiled networks against other engines and against the machine's limits: what ``qdialect-bench`` runs."""
