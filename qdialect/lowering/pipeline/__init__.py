"""The phases of the lowering in their order, and kernels that go through them apart."""
