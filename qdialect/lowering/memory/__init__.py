"""Where tensors live, and how kernels see them."""
