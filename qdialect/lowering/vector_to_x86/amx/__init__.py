"""vector -> x86 with matrix tiles: chains of contractions become products of AMX tiles."""
