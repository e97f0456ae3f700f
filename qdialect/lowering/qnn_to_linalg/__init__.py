"""qnn -> linalg: a network becomes kernels, written as text, and calls of them over planned memory."""
