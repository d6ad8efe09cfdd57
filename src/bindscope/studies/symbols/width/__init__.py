"""Inverse scaling with width, and why."""
