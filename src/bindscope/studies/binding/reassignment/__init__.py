"""What a run does with variables that are assigned again, layer by layer and through training."""
