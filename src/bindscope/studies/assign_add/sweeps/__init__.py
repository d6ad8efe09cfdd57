"""How many pairs and two-variable sequences training must show."""
