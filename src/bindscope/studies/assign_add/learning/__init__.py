"""Phases and spikes of training."""
