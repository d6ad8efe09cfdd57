"""Study 2, compositional arithmetic by assigning and adding (arXiv 2605.31497): presets, experiments, results, claims."""
