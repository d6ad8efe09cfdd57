"""Which algorithm a run follows chains by, at its last checkpoint and through training."""
