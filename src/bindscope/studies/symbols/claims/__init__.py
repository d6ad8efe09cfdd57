"""The claims of study 3."""
