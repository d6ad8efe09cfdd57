"""The figure behind each claim about binding."""
