"""The instructions that patterns emit, one family a file; each is one definition with its meaning."""
