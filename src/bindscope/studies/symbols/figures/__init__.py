"""Figures of the claims of study 3."""
