"""Which accounts of a lookup a patched answer follows, and with which weights: a mixture of mechanisms."""
