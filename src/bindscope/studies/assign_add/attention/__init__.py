"""What each layer attends to."""
