"""Where in the residual stream names and values live: directions found, tested causally, and held against controls."""
