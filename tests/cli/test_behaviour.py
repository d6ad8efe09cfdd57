"""``bindscope behaviour`` and ``bindscope lens`` as a person uses them, on a run small enough to train in a moment."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from bindscope.cli.behaviour import parse_range
from bindscope.cli.behaviour_tables import format_behaviour, format_importance
from bindscope.cli.main import run
from bindscope.measures.binding.behaviour import behaviour_by
from bindscope.measures.binding.importance import explain_target
from bindscope.measures.binding.predictions import predict_answers
from bindscope.tasks.binding import BindingTask
from cli.answers import answer
from measures.answering import Answering, say_line_1


def test_groups_are_printed_with_intervals_and_as_json_the_same(workplace: Path, capsys) -> None:
    arguments = ["behaviour", "small", "--by", "root-line", "--n", "120"]
    table, found = answer(capsys, *arguments), json.loads(answer(capsys, *arguments, "--json"))
    variables = found["variables"]
    assert found["attributes"]["step"] == 12
    assert sum(variables["n"]["values"]) == 120
    assert variables["accuracy"]["dims"] == ["root_line"]
    for fraction, low in zip(variables["accuracy"]["values"], variables["accuracy_low"]["values"]):
        assert f"{fraction:.4f}  {low:.4f}–" in table
    assert "followed where it is wrong" in table


def test_the_same_seed_gives_the_same_behaviour(workplace: Path, capsys) -> None:
    first, again, other = (answer(capsys, "behaviour", "small", "--n", "60", "--seed", seed) for seed in "112")
    assert first == again != other


def test_other_tables_are_given_instead(workplace: Path, tmp_path: Path, capsys) -> None:
    confusion = answer(capsys, "behaviour", "small", "--confusion", "--n", "50", "--step", "0")
    assert "no digit" in confusion
    explained = json.loads(answer(capsys, "behaviour", "small", "--importance", "line-1", "--n", "40", "--json"))
    assert explained["coordinates"]["attribute"]
    path = tmp_path / "grid.nc"
    grid = answer(capsys, "behaviour", "small", "--lengths", "2-6", "--depths", "1-3", "--n", "8", "--out", str(path))
    assert "depth 3" in grid
    saved = xr.load_dataset(path)
    assert saved.accuracy.shape == (5, 3)
    assert np.isnan(saved.accuracy.sel(lines=2, depth=3))
    assert "–" in next(line for line in grid.splitlines() if line.strip().startswith("2 "))


def test_the_table_of_a_known_heuristic_says_so() -> None:
    batch = BindingTask(lines=6, max_depth=2).sample_evaluation(np.random.default_rng(0), 100)["test"]
    lines = format_behaviour(behaviour_by(predict_answers(Answering(say_line_1), batch), "depth"), "depth").splitlines()
    source = lines[lines.index("the line whose constant was given") + 3].split()
    assert source == ["1", "1.0000", "0.0000", "0.0000", "0.0000"]
    rules = lines[lines.index("how often a rule is followed where it is wrong") + 3].split()
    assert rules[1] == "1.0000"


def test_the_most_important_attribute_stands_first() -> None:
    rng = np.random.default_rng(0)
    given = {"noise": rng.integers(0, 5, 300), "cause": rng.integers(0, 4, 300)}
    found = explain_target(given, given["cause"] > 1, rng)
    found.attrs["target"] = "it is so"
    rows = format_importance(found).splitlines()
    assert rows[3].startswith("cause")
    assert rows[4].startswith("noise")


def test_the_lens_reads_every_checkpoint(workplace: Path, tmp_path: Path, capsys) -> None:
    text = answer(capsys, "lens", "small", "--n", "60", "--out", str(tmp_path / "lens.nc"))
    assert "left out" in text
    saved = xr.load_dataset(tmp_path / "lens.nc")
    assert saved.step.values.tolist() == [0, 4, 8, 12]
    assert saved.sizes["layer"] == 3
    found = json.loads(answer(capsys, "lens", "small", "--n", "60", "--steps", "12,4", "--json"))
    assert found["coordinates"]["step"] == [4, 12]
    np.testing.assert_allclose(found["variables"]["margin"]["values"], saved.margin.sel(step=[4, 12]), atol=1e-6)


def test_the_lens_of_one_program_ends_with_the_model_s_prediction(workplace: Path, capsys) -> None:
    program = "a=5;b=a;c=3;#b:"
    found = json.loads(answer(capsys, "lens", "small", "--program", program, "--steps", "12", "--json"))
    predicted = json.loads(answer(capsys, "predict", "small", program, "--step", "12", "--json"))
    reading = {name: variable["values"][0][-1][-1] for name, variable in found["variables"].items()}
    assert reading["top_probability"] == pytest.approx(predicted["top"][0]["probability"], abs=1e-5)
    table = answer(capsys, "lens", "small", "--program", program, "--steps", "12").splitlines()
    assert "answer 5" in table[1]
    assert reading["top"] in table[-1].split()
    assert len(table) == 3 + len(found["coordinates"]["site"])


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["behaviour", "small", "--by", "dept"], "Did you mean 'depth'?"),
        (["behaviour", "small", "--n", "0"], "--n. Must be >= 1"),
        (["behaviour", "small", "--step", "7"], "the nearest is 8"),
        (["behaviour", "small", "--lengths", "2:25"], "a range such as 2-25"),
        (["behaviour", "small", "--lengths", "9-4"], "the smaller one first"),
        (["behaviour", "small", "--lengths", "4", "--depths", "9"], "smaller depths"),
        (["behaviour", "small", "--confusion", "--lengths", "4"], "give one of them"),
        (["lens", "small", "--steps", "4,5"], "step 5 was not saved"),
        (["lens", "small", "--n", "0"], "--n. Must be >= 1"),
        (["lens", "small", "--program", "a=5;b=c;#b:"], "line 2: 'c' is used before it is assigned"),
    ],
)
def test_what_cannot_be_measured_is_refused_in_one_sentence(
    arguments: list[str], sentence: str, workplace: Path, capsys
) -> None:
    before = sorted(workplace.rglob("*"))
    assert run(arguments) == 2
    captured = capsys.readouterr()
    assert sentence in captured.err
    assert captured.err.count("\n") == 1
    assert not captured.out
    assert sorted(workplace.rglob("*")) == before


def test_a_range_is_its_two_ends_or_one_number() -> None:
    assert list(parse_range("2-4", "--lengths")) == [2, 3, 4]
    assert list(parse_range("7", "--lengths")) == [7]
