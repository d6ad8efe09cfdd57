"""How it learns: the loop, optimisers, schedules and checkpoint plan. Takes models and batches, never a path."""
