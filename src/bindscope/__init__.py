"""Bindscope: a laboratory for how a transformer learns to bind variables to values and compute with them."""

__version__ = "0.1.0"
