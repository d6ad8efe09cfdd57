"""Measures that only make sense for templates of symbols."""
