"""How a mechanism is found by changing it: model and contrast in, labelled arrays out."""
