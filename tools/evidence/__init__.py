"""Measures operators beside their frameworks."""
