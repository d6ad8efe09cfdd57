"""Component patching between checkpoints (transplants)."""
