"""Hypotheses about how a model follows a chain, as causal models, and which of two it agrees with."""
