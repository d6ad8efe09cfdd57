"""Measures that only make sense for binding programs."""
