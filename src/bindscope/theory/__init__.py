"""Known answers: transformers whose weights we write ourselves, and closed forms."""
