"""How it learns: the loop, optimisers, schedules and checkpoint plan. Takes models and batches, never a path."""

from bindscope.lazy import reexport

PUBLIC = {
    "TrainingConfig": "bindscope.training.config",
    "train": "bindscope.training.loop",
    "build_optimizer": "bindscope.training.optimizer",
    "MemoryKeeper": "bindscope.training.state",
}
__all__ = [*PUBLIC]
__getattr__, __dir__ = reexport(__name__, PUBLIC)
