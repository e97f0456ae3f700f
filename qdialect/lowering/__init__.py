"""qnn -> linalg -> vector -> x86 -> llvm: how a network becomes machine code; one step a file."""
