"""Assign and add: `c=1 b=17 | b+19` asks for 36, so a model must look a variable up and then add modulo a prime."""

from bindscope.tasks.assign_add.pairs import PairSplit
from bindscope.tasks.assign_add.sequence import Assignment, Operand, Sequence, SequenceFormat
from bindscope.tasks.assign_add.task import POOL_NAMES, AssignAddTask, split_by_swap

__all__ = [
    "POOL_NAMES",
    "AssignAddTask",
    "Assignment",
    "Operand",
    "PairSplit",
    "Sequence",
    "SequenceFormat",
    "split_by_swap",
]
