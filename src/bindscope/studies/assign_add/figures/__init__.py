"""The figure behind each claim about sums."""
