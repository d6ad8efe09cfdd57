"""How figures look, and the charts that studies fraction. Knows no study."""
