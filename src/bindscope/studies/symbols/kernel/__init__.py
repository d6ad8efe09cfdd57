"""The transformer kernel, and what it foretells."""
