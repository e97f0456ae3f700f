"""Helpers that know nothing of networks: errors, files, limits, options, registries."""
