"""The figures of study 3."""
