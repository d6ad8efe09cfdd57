"""The local learning coefficient: how many directions around some weights the loss can tell apart."""
