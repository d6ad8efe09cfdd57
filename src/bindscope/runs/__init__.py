"""What is saved: the run directory. The only package that knows the disk."""

from bindscope.lazy import reexport

PUBLIC = {
    "Run": "bindscope.runs.directory",
    "RunConfig": "bindscope.runs.config",
    "override": "bindscope.runs.config",
    "find_run": "bindscope.runs.locate",
    "train_run": "bindscope.runs.execute",
    "resume_run": "bindscope.runs.execute",
}
__all__ = [*PUBLIC]
__getattr__, __dir__ = reexport(__name__, PUBLIC)
