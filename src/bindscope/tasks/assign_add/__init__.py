"""Assign and add: `c=1 b=17 | b+19` asks for 36, so a model must look a variable up and then add modulo a prime."""

from bindscope.tasks.assign_add.pairs import PairSplit
from bindscope.tasks.assign_add.sequence import SequenceFormat
from bindscope.tasks.assign_add.task import SPLIT_NAMES, AssignAddTask

__all__ = [
    "SPLIT_NAMES",
    "AssignAddTask",
    "PairSplit",
    "SequenceFormat",
]
