"""Claims, results, verdicts, experiments: what every study is made of. Knows no study."""
