"""Where names and values live in the residual stream, and whether the heuristic stays."""
