"""Questions that are answered by training several runs."""
