"""The moves command: of a typed pair and of drawn ones, as table, JSON, figure and numbers; and what cannot be asked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import xarray as xr

from cli.answers import answer, refusal

PAIR = ("a=2;b=7;c=a;d=b;#c:", "a=5;b=7;c=a;d=b;#c:")
RUN = "binding-plain"


def test_a_typed_pair_names_its_moves_and_writes_a_figure_and_numbers(tmp_path: Path, capsys) -> None:
    said = answer(capsys, "moves", RUN, *PAIR, "--out", str(tmp_path / "moves.svg"))
    assert "one typed pair, of depth 2" in said
    assert "The value sits at ‘2’ (rhs 1)" in said
    assert (tmp_path / "moves.svg").stat().st_size > 1000
    found = json.loads(answer(capsys, "moves", RUN, *PAIR, "--json", "--out", str(tmp_path / "moves.nc")))
    assert any(move["target"] == "colon" and move["what"] == "value" for move in found["moves"])
    with xr.open_dataset(tmp_path / "moves.nc") as dataset:
        assert set(dataset["head"].dims) == {"what", "layer", "index", "position"}
        assert dataset.attrs["finding"] == found["finding"]


def test_drawn_pairs_have_intervals(tmp_path: Path, capsys) -> None:
    found = json.loads(
        answer(capsys, "moves", RUN, "--n", "6", "--depth", "2", "--json", "--out", str(tmp_path / "moves.nc"))
    )
    assert "pairs of depth 2" in found["pairs"]
    with xr.open_dataset(tmp_path / "moves.nc") as dataset:
        assert bool((dataset.together_low <= dataset.together_high).all())


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["a=2;c=a;#c:"], "give a second one"),
        (["a=2;c=a;#c:", "a=2;c=3;#c:"], "follow different lines"),
        (["--n", "1"], "--n: must be at least 2"),
        (["--depth", "9"], "depth"),
        (["--step", "0", "--n", "4"], "ask a later checkpoint"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_one_sentence(words: list[str], sentence: str, capsys) -> None:
    assert sentence in refusal(capsys, "moves", RUN, *words)
