"""What a model answers, told apart by attributes of the program."""
