"""Which edges between parts carry the answer, and how many of them are enough, through training."""
