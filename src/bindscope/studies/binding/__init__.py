"""Study 1, variable binding in symbolic programs (arXiv 2505.20896): presets, experiments, results and claims."""
