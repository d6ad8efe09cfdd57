"""Every door asks the same question: the command and the Python of a question, given back to us, are that question."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from pydantic import ValidationError

import bindscope
from bindscope.cli.main import build_app
from bindscope.questions.patch import Patch
from bindscope.questions.question import Question, RunQuestion, describe_fields
from bindscope.questions.table import QUESTIONS, encode_table
from bindscope.web.asking import request_model
from bindscope.web.pages import PAGES
from questions.asked import Asked, questions, unanswered

TABLE = Path(__file__).parents[2] / "frontend" / "src" / "api" / "questions.json"
SLOW = settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])


@SLOW
@given(question=questions())
def test_the_command_of_a_question_asks_it(question: Question) -> None:
    words = shlex.split(question.command())
    assert words[0] == "bindscope"
    with unanswered(), pytest.raises(Asked) as asked:
        build_app()(words[1:])
    assert asked.value.question == question


@SLOW
@given(question=questions())
def test_the_python_of_a_question_asks_it_and_imports_bindscope_alone(question: Question) -> None:
    text = question.python()
    assert [line for line in text.splitlines() if "import" in line] == ["import bindscope"]
    with unanswered(), pytest.raises(Asked) as asked:
        exec(text, {})
    assert asked.value.question == question


def test_every_live_operation_takes_its_fields_from_its_question() -> None:
    for operation in (operation for page in PAGES for operation in page.operations):
        known = describe_fields(operation.question)
        for name, field in operation.request.model_fields.items():
            assert field.description == known["steps" if name not in known else name].help
        assert ("run" in operation.request.model_fields) == issubclass(operation.question, RunQuestion)
        assert operation.request.__doc__ == operation.question.__doc__
        assert operation.request is not None
        assert request_model(operation.question, "Other", operation.fields).__name__ == "OtherQuestion"


def test_no_request_names_a_file_that_is_loaded() -> None:
    """A metric of one's own is code: the command line and Python load it, a server never does."""
    for operation in (operation for page in PAGES for operation in page.operations):
        known = describe_fields(operation.question)
        assert not [name for name in operation.request.model_fields if name in known and known[name].live.get("never")]
        with pytest.raises(ValidationError, match=r"metric\n +Extra inputs are not permitted"):
            operation.request.model_validate({"metric": "mine.py:f"})
    with pytest.raises(ValueError, match=r"Patch\.metric is never taken from a request"):
        request_model(Patch, "Own", ("metric",))


def test_every_question_has_help_for_each_field_and_a_method_that_says_it() -> None:
    views = {"run": [type(bindscope.open_run(name)) for name in ("binding-laptop", "assign-add")]}
    views["study"] = [type(bindscope.open_study("symbols"))]
    for question in QUESTIONS:
        assert question.__doc__
        helps = {name: about.help for name, about in describe_fields(question).items()}
        assert all(text.endswith(".") for text in helps.values()), question
        methods = [getattr(view, question.method, None) for view in views[question.opener]]
        told = " ".join(method.__doc__ or "" for method in methods if method is not None)
        assert any(text in told for name, text in helps.items() if name != "run")


def test_the_browser_has_the_table_of_these_questions() -> None:
    assert TABLE.read_bytes() == encode_table(), "run 'make types'"
