"""Study 3: when can transformers reason with abstract symbols? (arXiv 2310.09753)."""
