"""What answers: one readable transformer for all three studies, the names of its inner places, and its conversions."""
