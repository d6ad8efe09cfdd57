"""Which accounts of a lookup a run's patched answers follow, layer by layer and through training."""
