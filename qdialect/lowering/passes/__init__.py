"""The steps of the lowering as passes: one a file, each named after the phase it leads to."""
