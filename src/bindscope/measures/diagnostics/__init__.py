"""Cheap numbers about a checkpoint that might say whether a plateau of the loss is about to end."""
