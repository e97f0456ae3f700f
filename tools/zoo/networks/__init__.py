"""The float networks, each built with seeded random weights; nothing is downloaded."""
