"""The list of what verdicts rest on, as a person reads it."""

from __future__ import annotations

import pytest

from bindscope.cli.main import run


def test_the_list_says_what_was_trained_what_is_left_and_what_it_settles(capsys, tmp_path):
    assert run(["evidence", "binding-plain", "held-out", "--runs", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    plain = next(line for line in printed.splitlines() if line.startswith("binding-plain"))
    assert "1 of 1" in plain
    assert "complete" in plain
    assert "VB3" in plain
    held_out = next(line for line in printed.splitlines() if line.startswith("held-out"))
    assert "VB9" in held_out
    assert printed.splitlines()[-1].endswith(("on a quiet core.", "Nothing is left to train."))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "word"),
    [(["nothing"], "no verdict rests on 'nothing'"), (["--hours", "0"], "hours"), (["--jobs", "0"], "jobs")],
)
def test_what_cannot_be_listed_or_trained_is_refused_in_a_sentence(arguments, word, capsys):
    assert run(["evidence", *arguments]) == 2
    assert word in capsys.readouterr().err.lower()
