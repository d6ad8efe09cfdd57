from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bindscope.cli.table import fill_lines, format_count, format_duration, format_table

CELLS = st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1, max_size=12)


@given(st.lists(st.tuples(CELLS, CELLS, CELLS), min_size=1, max_size=6))
def test_every_cell_of_a_table_starts_or_ends_in_its_column(rows: list[tuple[str, str, str]]) -> None:
    lines = format_table(["first", "second", "third"], rows, numbers=[1]).splitlines()
    dashes = lines[1].split("  ")
    start, end = len(dashes[0]) + 2, len(dashes[0]) + 2 + len(dashes[1])
    for row, line in zip(rows, lines[2:]):
        assert line.startswith(row[0])
        assert line[start:end].strip() == row[1]
        assert line[start:end].endswith(row[1])
        assert line.endswith(row[2])


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (42.3, "42 s"), (90, "1 min 30 s"), (5400, "1 h 30 min"), (3601, "1 h"), (200_000, "2 d 7 h")],
)
def test_a_duration_shows_its_two_largest_units(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


@pytest.mark.parametrize(
    ("number", "text"), [(7, "7"), (999, "999"), (205_312, "205k"), (1_500, "1.5k"), (37_812_224, "37.8M")]
)
def test_a_count_keeps_three_figures(number: int, text: str) -> None:
    assert format_count(number) == text


def test_sentences_break_between_words_on_a_terminal_and_not_in_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    sentences = "VB3  " + "the value hops along the chain, pointer-backward " * 6 + "\n\nanother"
    assert fill_lines(sentences) == sentences
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "60")
    lines = fill_lines(sentences).splitlines()
    assert max(map(len, lines)) < 60
    assert " ".join(lines).split() == sentences.split()
    assert lines[-2:] == ["", "another"]
