"""The constructed transformer is a run like any other, and shows the circuit that was written into it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import bindscope
from bindscope.cli.main import run as run_command
from bindscope.errors import BindscopeError
from bindscope.interventions.contrast import contrast_pairs
from bindscope.interventions.grids import position_grid
from bindscope.runs.construct import construct_run
from bindscope.runs.directory import Run
from bindscope.runs.execute import resume_run
from bindscope.studies.framework.command import describe_origin, find_command
from bindscope.tasks.binding.pairs import sample_root_pairs
from bindscope.tasks.binding.structure import named_positions
from bindscope.theory.constructed import constructed_circuit

LINES, DEEPEST = 6, 3


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return construct_run(tmp_path_factory.mktemp("runs") / "ideal", LINES, DEEPEST, n=200)


def test_it_has_one_checkpoint_and_one_evaluation_in_which_every_answer_is_right(made: Run) -> None:
    assert (made.name, made.steps, made.status) == ("ideal", (0,), "finished")
    (evaluation,) = made.metrics
    assert evaluation["step"] == 0
    assert evaluation["test"]["accuracy"] == 1
    assert made.config.task.lines == LINES


@pytest.mark.parametrize("depth", range(1, DEEPEST + 1))
def test_a_grid_over_the_residual_stream_shows_where_the_value_is_in_every_layer(made: Run, depth: int) -> None:
    """At each position of the chain from the layer after it is written to the layer in which it is read, nowhere else."""
    pairs = sample_root_pairs(made.config.task, np.random.default_rng(0), 8, range(depth, depth + 1))
    grid = position_grid(made.checkpoint(), contrast_pairs(pairs), named_positions(pairs)).success
    moves = [step for step in constructed_circuit(depth, DEEPEST) if not step.source.startswith("lhs")]
    written = {"rhs 1": 0} | {step.target: step.layer + 1 for step in moves}
    expected = {(layer, step.source) for step in moves for layer in range(written[step.source], step.layer + 1)}
    assert set(np.unique(grid.values)) == {0, 1}
    found = {
        (layer, position)
        for layer in grid.layer.values
        for position in grid.position.values
        if grid.sel(layer=layer, position=position).all()
    }
    assert found == expected
    assert grid.sum() == 8 * len(expected)


def test_it_is_opened_by_its_name_and_answers(made: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(made.path.parents[0])
    opened = bindscope.open_run(str(made.path))
    predicted = opened.predict("a=5\nb=a\nc=b\n#c:")
    assert "5" in str(predicted)


def test_it_says_what_it_is_and_which_command_makes_it_again(made: Run, tmp_path: Path) -> None:
    assert describe_origin(made).startswith("The ideal mechanism")
    command = find_command(made)
    assert command == "bindscope construct --name ideal --lines=6 --max-depth=3"
    assert run_command([*command.split()[1:], "--n", "50", "--out", str(tmp_path)]) == 0
    again = Run.open(tmp_path / "ideal")
    assert again.manifest.checkpoints[0].sha256 == made.manifest.checkpoints[0].sha256


def test_it_cannot_be_trained_on(made: Run) -> None:
    with pytest.raises(BindscopeError, match="holds no state to resume from"):
        resume_run(made.path)


def test_before_it_is_made_its_name_says_how_to_make_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_command(["evaluate", "binding-constructed"]) == 2
    assert "write it with 'bindscope construct'" in capsys.readouterr().err
    assert run_command(["construct", "--lines", "4", "--max-depth", "2", "--n", "50"]) == 0
    assert "accuracy 1.0000" in capsys.readouterr().out
    assert run_command(["construct", "--lines", "4"]) == 2
    assert "exists already" in capsys.readouterr().err
    assert run_command(["construct", "--lines", "0"]) == 2
    assert run_command(["construct", "--lines", "3", "--max-depth", "9"]) == 2
    assert "3 lines hold no chain of depth 9" in capsys.readouterr().err
    assert run_command(["runs"]) == 0
    assert "binding-constructed" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "sentence"), [("a/b", "name: 'a/b' cannot name a directory"), (".x", "cannot name"), ("taken", "exists")]
)
def test_a_name_that_no_run_can_have_is_refused_before_anything_is_written(
    name: str, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "mine.txt").write_text("mine")
    assert run_command(["construct", "--name", name, "--out", str(tmp_path)]) == 2
    told = capsys.readouterr().err
    assert sentence in told
    assert told.count("\n") == 1
    assert [path.name for path in tmp_path.rglob("*")] == ["taken", "mine.txt"]
