"""The circuit as it stands in the weights."""
