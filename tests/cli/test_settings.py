from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bindscope.cli.settings import parse_settings, parse_value
from bindscope.errors import BindscopeError


@given(st.one_of(st.integers(), st.booleans(), st.floats(allow_nan=False, allow_infinity=False)))
def test_every_number_and_truth_value_is_read_as_itself(value: object) -> None:
    assert parse_value(json.dumps(value)) == value
    assert type(parse_value(json.dumps(value))) is type(value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3e-4", 3e-4),
        ("learned", "learned"),
        ("[0.95, 0.999]", [0.95, 0.999]),
        ("none", None),
        ("True", True),
        ("", ""),
        ("a b", "a b"),
    ],
)
def test_a_value_is_toml_or_the_word_itself(text: str, value: object) -> None:
    assert parse_value(text) == value


def test_a_value_may_contain_an_equals_sign() -> None:
    assert parse_settings(["name=a=b"]) == {"name": "a=b"}


@pytest.mark.parametrize("text", ["training.steps", "=3", "", "  =  "])
def test_a_setting_without_key_or_value_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(BindscopeError, match="KEY=VALUE"):
        parse_settings([text])


def test_the_same_key_twice_is_refused() -> None:
    with pytest.raises(BindscopeError, match="training.steps: given twice"):
        parse_settings(["training.steps=1", "training.steps=2"])
