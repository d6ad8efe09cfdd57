"""The local learning coefficient over training."""
