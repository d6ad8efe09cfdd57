"""Progress measures over training."""
