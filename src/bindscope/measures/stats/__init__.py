"""Statistics: fractions, thresholds, waiting times, boosted trees."""
