"""How two values are added."""
