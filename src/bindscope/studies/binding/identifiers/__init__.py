"""Whether names and values of a run are tied by binding identifiers, layer by layer and through training."""
