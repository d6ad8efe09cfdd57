"""Methods that ask a question: what they say of their parameters is what the question says of its fields."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TypeVar

from bindscope.questions.question import Question, describe_fields

Method = TypeVar("Method", bound=Callable[..., object])


def asks(question: type[Question]) -> Callable[[Method], Method]:
    """Add the help of the question's fields to a method's docstring."""

    def decorate(method: Method) -> Method:
        known = {about.keyword or name: about.help for name, about in describe_fields(question).items()}
        lines = [f"{name}\n    {known[name]}" for name in inspect.signature(method).parameters if name in known]
        text = inspect.cleandoc(method.__doc__ or "")
        method.__doc__ = "\n".join([text, "", "Parameters", "----------", *lines])
        return method

    return decorate
