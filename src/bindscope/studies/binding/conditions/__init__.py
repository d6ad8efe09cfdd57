"""Under which conditions binding is learned: seeds, weighting, regularities."""
