"""How behaviour is understood: model and batch in, numbers and labelled arrays out."""
