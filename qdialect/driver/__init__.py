"""Any model as an executable: as a whole, in parts, for open shapes and batches, tuned, or by `torch.compile`."""
