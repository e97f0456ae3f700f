"""Builds checked `qnn` ops for every front end: shapes, windows, slices and extents."""
