from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bindscope.errors import BindscopeError
from bindscope.runs.metrics import append_metrics, read_metrics, truncate_metrics

numbers = st.floats(allow_nan=False, allow_infinity=False)
records = st.lists(st.dictionaries(st.text('abc\n"é', min_size=1), st.none() | numbers | st.lists(numbers)), max_size=5)


@given(records)
def test_what_was_appended_is_read_back(tmp_path_factory, contents):
    path = tmp_path_factory.mktemp("metrics") / "metrics.jsonl"
    rows = [{**content, "step": step} for step, content in enumerate(contents)]
    for row in rows:
        append_metrics(path, row)
    assert read_metrics(path) == rows
    assert len(path.read_text().splitlines()) == len(rows) if rows else not path.exists()


def test_a_kill_in_the_middle_of_a_line_loses_no_line_before_it(tmp_path):
    path = tmp_path / "metrics.jsonl"
    rows = [{"step": step, "test": {"accuracy": step / 10}} for step in range(4)]
    for row in rows:
        append_metrics(path, row)
    whole = path.read_bytes()
    for end in range(len(whole) + 1):
        path.write_bytes(whole[:end])
        n_complete = whole[:end].count(b"\n")
        assert read_metrics(path)[:n_complete] == rows[:n_complete]
        truncate_metrics(path, 99)
        append_metrics(path, {"step": 100})
        assert read_metrics(path)[-1] == {"step": 100}
        assert read_metrics(path)[:n_complete] == rows[:n_complete]


def test_truncating_forgets_later_evaluations_only(tmp_path):
    path = tmp_path / "metrics.jsonl"
    for step in range(0, 50, 10):
        append_metrics(path, {"step": step})
    truncate_metrics(path, 25)
    assert [row["step"] for row in read_metrics(path)] == [0, 10, 20]
    truncate_metrics(path, -1)
    assert read_metrics(path) == []


def test_a_number_that_is_none_becomes_null_as_json_has_no_other_word(tmp_path):
    path = tmp_path / "metrics.jsonl"
    append_metrics(path, {"step": 0, "accuracy": [math.nan, 0.5], "nested": {"loss": math.inf}})
    assert json.loads(path.read_text()) == {"step": 0, "accuracy": [None, 0.5], "nested": {"loss": None}}


@pytest.mark.parametrize("line", ["{", "[]", '{"loss": 1}', "\x00"])
def test_damage_in_the_middle_is_named_with_its_line(tmp_path, line):
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"step": 0}\n' + line + '\n{"step": 2}\n')
    with pytest.raises(BindscopeError, match=r"metrics.jsonl, line 2: not the record of an evaluation"):
        read_metrics(path)
