from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bindscope.errors import BindscopeError
from bindscope.runs.manifest import Recorded
from bindscope.runs.metrics import append_metrics, read_metrics, record_metrics, truncate_metrics

numbers = st.floats(allow_nan=False, allow_infinity=False)
records = st.lists(st.dictionaries(st.text('abc\n"é', min_size=1), st.none() | numbers | st.lists(numbers)), max_size=5)


def append_all(path: Path, rows: Iterable[Mapping[str, Any]]) -> Recorded | None:
    recorded = None
    for row in rows:
        recorded = append_metrics(path, row, recorded)
    return recorded


@given(records)
def test_what_was_appended_is_read_back(tmp_path_factory, contents):
    path = tmp_path_factory.mktemp("metrics") / "metrics.jsonl"
    rows = [{**content, "step": step} for step, content in enumerate(contents)]
    recorded = append_all(path, rows)
    assert read_metrics(path, recorded) == read_metrics(path) == rows
    assert len(path.read_text().splitlines()) == len(rows) if rows else not path.exists()


def test_a_kill_in_the_middle_of_a_line_loses_no_line_before_it(tmp_path):
    """The line that was being added was not recorded yet; those before it were."""
    path = tmp_path / "metrics.jsonl"
    rows = [{"step": step, "test": {"accuracy": step / 10}} for step in range(4)]
    recorded = append_all(path, rows)
    whole = path.read_bytes()
    append_metrics(path, {"step": 50}, recorded)
    longer = path.read_bytes()
    for end in range(len(whole), len(longer) + 1):
        path.write_bytes(longer[:end])
        assert read_metrics(path, recorded) == rows
        again = append_metrics(path, {"step": 100}, recorded)
        assert read_metrics(path, again) == [*rows, {"step": 100}]


def test_a_run_of_an_earlier_format_is_read_as_far_as_it_is_whole(tmp_path):
    path = tmp_path / "metrics.jsonl"
    rows = [{"step": step} for step in range(4)]
    append_all(path, rows)
    whole = path.read_bytes()
    for end in range(len(whole) + 1):
        path.write_bytes(whole[:end])
        n_complete = whole[:end].count(b"\n")
        assert read_metrics(path)[:n_complete] == rows[:n_complete]
        recorded = record_metrics(path, 99, None)
        truncate_metrics(path, recorded)
        assert read_metrics(path, recorded)[:n_complete] == rows[:n_complete]


def test_one_flipped_bit_a_missing_line_or_a_missing_file_is_named(tmp_path):
    path = tmp_path / "metrics.jsonl"
    recorded = append_all(path, [{"step": step, "accuracy": 0.5} for step in range(3)])
    whole = path.read_bytes()
    for index in range(len(whole)):
        for bit in range(8):
            path.write_bytes(whole[:index] + bytes([whole[index] ^ 1 << bit]) + whole[index + 1 :])
            with pytest.raises(BindscopeError, match="the record of evaluations is damaged"):
                read_metrics(path, recorded)
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(BindscopeError, match=r"damaged: 1 of 3 evaluations are left; put back a copy"):
        read_metrics(path, recorded)
    path.unlink()
    with pytest.raises(BindscopeError, match=r"metrics.jsonl: the record of evaluations is missing"):
        read_metrics(path, recorded)


def test_nothing_is_added_to_a_damaged_record(tmp_path):
    path = tmp_path / "metrics.jsonl"
    recorded = append_all(path, [{"step": 0}, {"step": 1}])
    path.write_text('{"step":0}\n{"step":3}\n')
    with pytest.raises(BindscopeError, match="damaged"):
        append_metrics(path, {"step": 2}, recorded)
    assert path.read_text() == '{"step":0}\n{"step":3}\n'


def test_truncating_forgets_later_evaluations_only(tmp_path):
    path = tmp_path / "metrics.jsonl"
    recorded = append_all(path, [{"step": step} for step in range(0, 50, 10)])
    for last, left in ((25, [0, 10, 20]), (-1, [])):
        recorded = record_metrics(path, last, recorded)
        assert [row["step"] for row in read_metrics(path, recorded)] == left  # before the lines are gone, and after
        truncate_metrics(path, recorded)
        assert [row["step"] for row in read_metrics(path)] == left


def test_a_number_that_is_none_becomes_null_as_json_has_no_other_word(tmp_path):
    path = tmp_path / "metrics.jsonl"
    append_metrics(path, {"step": 0, "accuracy": [math.nan, 0.5], "nested": {"loss": math.inf}}, None)
    assert json.loads(path.read_text()) == {"step": 0, "accuracy": [None, 0.5], "nested": {"loss": None}}


@pytest.mark.parametrize("line", ["{", "[]", '{"loss": 1}', "\x00"])
def test_damage_in_the_middle_is_named_with_its_line(tmp_path, line):
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"step": 0}\n' + line + '\n{"step": 2}\n')
    with pytest.raises(BindscopeError, match=r"metrics.jsonl, line 2: not the record of an evaluation"):
        read_metrics(path)
