"""The same on other templates."""
