"""Features of the residual stream that a run's checkpoints share, and when they appear."""
