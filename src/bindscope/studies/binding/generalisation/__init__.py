"""Programs unlike those of training."""
