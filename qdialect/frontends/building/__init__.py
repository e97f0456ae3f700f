"""Builds the ops of an imported model: checks of what is read, open extents, single ops, slices and windows."""
