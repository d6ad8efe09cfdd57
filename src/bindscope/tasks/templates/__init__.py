"""Template tasks: sequences such as ABA or ABB with symbols for A and B, asked of symbols never seen in training."""

from bindscope.tasks.templates.named import NAMED_TASKS, RandomTemplates, TemplateSet
from bindscope.tasks.templates.task import CLS, TemplateTask
from bindscope.tasks.templates.template import Template, are_equivalent, find_common_sequence

__all__ = [
    "CLS",
    "NAMED_TASKS",
    "RandomTemplates",
    "Template",
    "TemplateSet",
    "TemplateTask",
    "are_equivalent",
    "find_common_sequence",
]
