"""Results that the claims of study 3 read."""
