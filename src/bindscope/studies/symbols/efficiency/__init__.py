"""How many training sequences a model needs before it answers about unseen symbols."""
