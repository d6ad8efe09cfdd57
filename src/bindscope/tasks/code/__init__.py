"""The family ``code``: binding programs written as text for a tokenizer."""

from bindscope.tasks.code.forms import FORMS, Form
from bindscope.tasks.code.table import TextRendering, TokenTable
from bindscope.tasks.code.task import CodeTask

__all__ = ["FORMS", "CodeTask", "Form", "TextRendering", "TokenTable"]
