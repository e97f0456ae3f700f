"""What everything else shares and knows nothing of networks: errors, files, limits, options, registries."""
