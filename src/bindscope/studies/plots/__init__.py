"""How figures look, and the charts that studies share. Knows no study."""
