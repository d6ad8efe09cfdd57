"""What becomes of a variable that is assigned again: which write wins, what carries the overwrite, and who keeps state."""
