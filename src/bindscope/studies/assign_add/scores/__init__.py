"""The score that = gives to values in layer 2, by what it is made of."""
