"""Neurons of the last MLP as Fourier components."""
