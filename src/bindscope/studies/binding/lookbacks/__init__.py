"""Where the address, the pointer and the payload of a run's lookups are, layer by layer and through training."""
