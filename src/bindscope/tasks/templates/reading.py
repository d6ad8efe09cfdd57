"""Templates and labels as a person types them, or those of a task by its name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bindscope.errors import BindscopeError, suggest_nearest
from bindscope.tasks.templates.named import NAMED_TASKS
from bindscope.tasks.templates.task import TemplateTask
from bindscope.tasks.templates.template import Template

RANDOM = "random"  # the task whose templates are drawn


def read_templates(
    texts: Sequence[str], labels: Sequence[Any] | None = None
) -> tuple[tuple[str, ...], tuple[Any, ...] | None]:
    """Templates with the labels given to them; one text alone may name a task, whose labels are taken if none are given.

    >>> read_templates(["aba-abb"])
    (('ABA', 'ABB'), (1.0, -1.0))
    """
    given = None if labels is None else tuple(labels)
    if not texts:
        raise BindscopeError("give templates, such as AA and AB, or the name of a task such as aba-abb.")
    name = texts[0]
    if len(texts) == 1 and (name in NAMED_TASKS or name == RANDOM):
        found = TemplateTask(name=name).template_set  # type: ignore[arg-type]
        return found.templates, given or found.labels
    if len(texts) == 1 and not Template.parse(name).wildcards:
        hint = suggest_nearest(name, [*NAMED_TASKS, RANDOM])
        raise BindscopeError(
            f"'{name}' is neither a task nor a template with wildcards, which are capital letters.{hint}"
        )
    return tuple(texts), given


def read_labels(text: str) -> tuple[float, ...] | tuple[str, ...]:
    """``1,-1`` as numbers, ``C,D`` as tokens.

    >>> read_labels("1,-1")
    (1.0, -1.0)
    """
    parts = tuple(part.strip() for part in text.split(","))
    try:
        return tuple(float(part) for part in parts)
    except ValueError:
        return parts
