"""How a two-layer model adds: circuits read off its weights, and the behaviour they explain."""
