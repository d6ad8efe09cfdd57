"""Probes read what the constructed model's stream holds at a position, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import xarray as xr

from bindscope.errors import BindscopeError
from bindscope.measures.binding.probes import ProbePlan, find_targets, probe_positions
from bindscope.tasks.binding import BindingTask, Program, ask_programs, parse_program
from bindscope.tasks.task import Batch
from bindscope.theory.constructed import construct_dereferencer

RHS_1, RHS_2, RHS_3, COLON = 2, 6, 10, 14
LEAVING = 4  # the residual stream that leaves the constructed model's last layer


def fixed_shape(n: int, seed: int) -> Batch:
    """``a`` and ``b`` hold any two digits, ``c`` takes a's, and ``c`` is asked for."""
    digits = np.random.default_rng(seed).integers(0, 10, (n, 2))
    return ask_programs([parse_program(f"a={a}\nb={b}\nc=a\n#c:") for a, b in digits])


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


@pytest.fixture(scope="module")
def model():
    return construct_dereferencer(lines=3, max_depth=2)


@pytest.fixture(scope="module")
def probed(model) -> xr.Dataset:
    return probe_positions(
        model, fixed_shape(500, 0), fixed_shape(400, 1), generator(),
        layers=[0, 2, LEAVING], positions=[RHS_1, RHS_2, RHS_3, COLON],
    )  # fmt: skip


@pytest.mark.parametrize(
    ("layer", "position", "there"),
    [(0, RHS_1, "ac"), (0, RHS_2, "b"), (0, RHS_3, ""), (2, RHS_3, "ac"), (0, COLON, ""), (LEAVING, COLON, "ac")],
)
def test_what_is_there_is_read_and_what_is_not_is_at_chance(
    probed: xr.Dataset, layer: int, position: int, there: str
) -> None:
    cell = probed.sel(condition="trained", probe="linear", layer=layer, position=position)
    for variable in "abc":
        accuracy = cell.accuracy_by_variable.sel(variable=variable).item()
        assert accuracy == 1 if variable in there else accuracy < 0.2
    assert cell.accuracy.item() == pytest.approx(cell.accuracy_by_variable.sel(variable=list("abc")).mean().item())
    assert cell.accuracy_low <= cell.accuracy <= cell.accuracy_high


def test_trained_probes_read_the_same(model) -> None:
    dataset = probe_positions(
        model, fixed_shape(300, 0), fixed_shape(200, 1), generator(), probes=("logistic", "mlp"),
        layers=[0], positions=[RHS_2], plan=ProbePlan(n_epochs=30, batch_size=100, lr=0.01, hidden=32),
    )  # fmt: skip
    for probe in ("logistic", "mlp"):
        by_variable = dataset.accuracy_by_variable.sel(condition="trained", probe=probe).squeeze()
        assert by_variable.sel(variable="b") == 1
        assert by_variable.sel(variable=["a", "c"]).max() < 0.25
        assert dataset.accuracy.sel(condition="shuffled labels", probe=probe).item() < 0.25


def test_no_single_position_holds_the_whole_state(probed: xr.Dataset) -> None:
    trained = probed.sel(condition="trained", probe="linear")
    assert trained.state.max() < 0.2
    assert (trained.state_low <= trained.state).all()


def test_only_complete_lines_count_as_seen(probed: xr.Dataset) -> None:
    cell = probed.sel(condition="trained", probe="linear", layer=0, position=RHS_1)
    assert cell.seen_accuracy == 1
    assert cell.accuracy == pytest.approx(2 / 3, abs=0.05)


def test_controls_are_at_chance_where_the_model_computes(probed: xr.Dataset) -> None:
    assert probed.accuracy.sel(condition="shuffled labels").max() < 0.25
    untrained = probed.sel(condition="untrained model", probe="linear")
    assert untrained.accuracy_by_variable.sel(position=RHS_1, layer=0, variable="b") < 0.2
    assert untrained.accuracy.sel(position=RHS_1, layer=0) == pytest.approx(2 / 3, abs=0.05)  # the token itself


def test_base_rates_are_those_of_the_programs(probed: xr.Dataset) -> None:
    targets = find_targets(fixed_shape(400, 1))
    same = targets.digits[:, 1] == targets.digits[:, 0]
    assert probed.line_1_accuracy.item() == pytest.approx((2 + same.mean()) / 3)
    assert probed.line_1_state.item() == pytest.approx(same.mean())
    assert probed.majority_accuracy.item() < 0.2
    assert probed.attrs["n_variables_tested"] == 3 * 400


def test_targets_are_the_final_values_of_assigned_variables() -> None:
    batch = BindingTask(lines=9, n_variables=6, reassign=0.4).sample_batch(np.random.default_rng(2), 50)
    targets = find_targets(batch)
    for row in range(50):
        text = Program.from_tokens(batch.tokens[row]).text
        for letter in "abcdef":
            digit = targets.digits[row, ord(letter) - ord("a")]
            if f"{letter}=" not in text:
                assert digit == -1
                continue
            program = parse_program(text[: text.index("#")] + f"#{letter}:", reassignment=True)
            assert digit == program.answer
            assert targets.root_line[row, ord(letter) - ord("a")] == program.root_line
            assert targets.known_from[row, ord(letter) - ord("a")] == text.rindex(f"{letter}=") + 2


def test_impossible_probes_are_refused(model) -> None:
    fit, test = fixed_shape(20, 0), fixed_shape(20, 1)
    for options, sentence in [
        ({"probes": ("tree",)}, "probe 'tree': unknown; use linear, logistic, mlp"),
        ({"layers": [5]}, "layer 5: the model has layers 0 to 3"),
        ({"positions": [15]}, "position 15: the programs have positions 0 to 14"),
        ({"layers": []}, "at least one"),
    ]:
        with pytest.raises(BindscopeError, match=sentence):
            probe_positions(model, fit, test, generator(), **options)  # type: ignore[arg-type]
    longer = BindingTask(lines=4).sample_batch(np.random.default_rng(0), 5)
    with pytest.raises(BindscopeError, match="different lengths"):
        probe_positions(model, fit, longer, generator())
