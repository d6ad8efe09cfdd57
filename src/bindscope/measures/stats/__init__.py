"""Statistics: shares, thresholds, waiting times, boosted trees."""
