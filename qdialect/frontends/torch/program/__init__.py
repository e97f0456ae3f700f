"""Programs that PyTorch holds in memory: read as graphs of its operators, without operators that write in place."""
