"""Plateau diagnostics over training, and which of them announces the plateau's end."""
