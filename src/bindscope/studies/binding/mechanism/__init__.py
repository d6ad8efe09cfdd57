"""How a value travels from its root to the answer."""
