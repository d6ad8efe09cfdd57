"""The theorem about one gradient step."""
