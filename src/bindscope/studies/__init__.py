"""What was claimed: one module per paper, with its presets."""
