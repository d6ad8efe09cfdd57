from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bindscope.cli.settings import parse_settings
from bindscope.errors import BindscopeError

KEYS = st.text(string.ascii_lowercase + "._", min_size=1)
VALUES = st.text().map(str.strip)


@given(st.dictionaries(KEYS, VALUES))
def test_settings_come_back_as_they_were_written(settings: dict[str, str]) -> None:
    assert parse_settings(f"{key}={value}" for key, value in settings.items()) == settings


def test_a_value_may_contain_an_equals_sign() -> None:
    assert parse_settings(["name=a=b"]) == {"name": "a=b"}


@pytest.mark.parametrize("text", ["training.steps", "=3", "", "  =  "])
def test_a_setting_without_key_or_value_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(BindscopeError, match="KEY=VALUE"):
        parse_settings([text])


def test_the_same_key_twice_is_refused() -> None:
    with pytest.raises(BindscopeError, match=r"training\.steps: given twice"):
        parse_settings(["training.steps=1", "training.steps=2"])
