"""Reassignment: in the written model writes, overwrites and states stand where they were put; patches equal running it again."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import xarray as xr

from bindscope.errors import BindscopeError
from bindscope.interventions.contrast import contrast_pairs
from bindscope.measures.binding.probes import shuffle_digits
from bindscope.measures.binding.reassignment.finding import describe_path, describe_reassignment, describe_state
from bindscope.measures.binding.reassignment.measure import draw_reassignment, measure_reassignment
from bindscope.measures.binding.reassignment.patches import patched_digits
from bindscope.measures.binding.reassignment.states import (
    SHUFFLED,
    TRAINED,
    UNTRAINED,
    draw_state_programs,
    label_states,
    score_probes,
    tabulate_states,
    trace_states,
)
from bindscope.model.config import ModelConfig
from bindscope.model.transformer import Transformer
from bindscope.tasks.binding import BindingTask, Program, programs_of, to_digits
from bindscope.tasks.binding.program import LETTERS
from bindscope.tasks.binding.rewrites import sample_overwrites
from bindscope.theory.constructed import construct_dereferencer
from interventions.naive import naive_logits

TASK = BindingTask(lines=8, max_depth=2, reassign=0.3)
N = 16


def untrained(config: ModelConfig) -> Transformer:
    return Transformer(config, torch.Generator().manual_seed(0)).eval()


@pytest.fixture(scope="module")
def written() -> xr.Dataset:
    model = construct_dereferencer(8, 2)
    return measure_reassignment(model, draw_reassignment(TASK, untrained(model.config), N, seed=0))


def test_the_written_model_answers_with_the_write_in_force(written: xr.Dataset) -> None:
    assert (written.answered.sel(outcome="right") == 1).all()
    assert (written.solved == 1).all()


@pytest.mark.parametrize(
    ("situation", "position", "came", "layers"),
    [
        ("query", "first write", "last", []),
        ("query", "last write", "last", [0, 1]),  # until layer 1 hands it to the query
        ("query", "query", "last", [2, 3]),
        ("earlier", "last write", "last", [0, 1]),
        ("earlier", "reference", "last", [2]),  # which has it from layer 1 on, until layer 2 hands it on
        ("earlier", "query", "last", [3]),
        ("later", "first write", "first", [0, 1]),
        ("later", "last write", "first", []),
        ("later", "reference", "first", [2]),
        ("later", "query", "first", [3]),
        ("later", "colon", "first", [4]),
    ],
)
def test_a_write_is_carried_where_the_circuit_has_it(
    written: xr.Dataset, situation: str, position: str, came: str, layers: list[int]
) -> None:
    cell = written.write.sel(situation=situation, position=position)
    other = "first" if came == "last" else "last"
    np.testing.assert_array_equal(cell.sel(came=came), np.isin(written.layer, layers))
    assert (cell.sel(came=other) == 0).all()
    assert (cell.sel(came="unchanged") == 1 - cell.sel(came=came)).all()


def test_an_overwrite_is_held_by_the_name_then_the_value_then_the_query(written: xr.Dataset) -> None:
    undone = written.undone.sel(operation="constant")
    held = {"name": [0], "value": [1], "line": [0, 1], "query": [2, 3], "colon": [4], "lines after": [], "equals": []}
    for part, layers in held.items():
        np.testing.assert_array_equal(undone.sel(part=part), np.isin(written.layer, layers))
    said = describe_path(written)
    assert "the name on its line entering L0; its right-hand side entering L1; the query entering L2 to L3" in said
    assert "undoes at most 0 %" in said


def test_the_written_model_keeps_local_state_and_no_global_one(written: xr.Dataset) -> None:
    read = written.accuracy.sel(condition=TRAINED)
    assert (read.sel(state="local", place="right-hand side").values[2:] == 1).all()
    assert float(read.sel(state="asked", place="colon")[-1]) == 1
    assert (written.excess_low.sel(state="global", place="line end") < 0.02).all()
    assert "no running state is found" in describe_state(written)
    assert (written.accuracy.sel(condition=SHUFFLED, state="local", place="right-hand side") < 0.4).all()


def test_a_model_that_answers_nothing_is_said_to_hold_nothing() -> None:
    model = untrained(ModelConfig(d_vocab=40, n_positions=35, n_layers=2, n_heads=2, d_model=16, d_mlp=16))
    dataset = measure_reassignment(model, draw_reassignment(TASK, model, 8, seed=1))
    assert "nothing can be said of what holds the overwrite" in describe_reassignment(dataset)
    assert (dataset.write.sel(came=["first", "last"]).fillna(0) < 0.5).all()


def test_patched_answers_equal_running_the_model_again() -> None:
    model = untrained(ModelConfig(d_vocab=40, n_positions=35, n_layers=2, n_heads=2, d_model=16, d_mlp=16))
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(0.5 * torch.randn(weight.shape, generator=torch.Generator().manual_seed(weight.numel())))
    drawn = sample_overwrites(TASK, np.random.default_rng(0), 12, "copy")
    contrast = contrast_pairs(drawn.pairs)
    found = patched_digits(model, drawn.pairs, drawn.marks())  # [part, layer, pair]
    for index, marks in enumerate(drawn.marks().values()):
        sites = [f"L{layer}.resid_pre" for layer in range(2)]
        again = naive_logits(model, contrast, sites, torch.from_numpy(marks)).argmax(-1)
        np.testing.assert_array_equal(found[index, :2], to_digits(drawn.pairs.base, again.numpy()))


def test_what_variables_hold_after_each_line_is_what_the_interpreter_says() -> None:
    batch = draw_state_programs(TASK, np.random.default_rng(0), 40).fit
    held, _ = trace_states(programs_of(batch)[0])
    for row, tokens in enumerate(batch.tokens):
        program, now = Program.from_tokens(tokens), {}
        for line, assignment in enumerate(program.assignments):
            now[assignment.variable] = program.values[line]
            assert {LETTERS[letter]: int(digit) for letter, digit in enumerate(held[line, row]) if digit >= 0} == now


@pytest.mark.parametrize("there", ["local", "global"])
def test_probes_find_the_state_that_a_stream_holds_and_not_the_other(there: str) -> None:
    drawn = draw_state_programs(TASK, np.random.default_rng(0), 800)
    labels, answers = label_states(drawn.fit), label_states(drawn.test)
    generator = torch.Generator().manual_seed(0)
    shuffled = [type(each)(each.cell, each.position, shuffle_digits(each.digits, generator)) for each in labels]
    streams = [written_stream(batch, there, generator) for batch in (drawn.fit, drawn.test)]
    trained, control = score_probes(*streams, (labels, shuffled), answers)
    found = {
        name: {(cell, 0): hits for cell, hits in by_cell.items()}
        for name, by_cell in ((TRAINED, trained), (SHUFFLED, control), (UNTRAINED, control))
    }
    read = tabulate_states(found, 1).isel(layer=0).sel(place="line end")
    other = "global" if there == "local" else "local"
    assert float(read.accuracy.sel(condition=TRAINED, state=there)) > 0.95
    assert float(read.excess_low.sel(state=there)) > 0.7
    assert float(read.accuracy.sel(condition=TRAINED, state=other)) < 0.3
    assert abs(float(read.excess.sel(state=other))) < 0.15


def written_stream(batch, there: str, generator: torch.Generator) -> torch.Tensor:
    """Streams [position, program, feature] with noise, one-hot digits of each label of one state where it is asked, and ones."""
    n_positions, n_programs = batch.tokens.shape[1], len(batch)
    stream = 0.01 * torch.randn(n_positions, n_programs, 8 * 10 + 1, generator=generator)
    for label in label_states(batch):
        if label.cell[0] == there:
            for index in range(label.digits.shape[1]):
                rows = np.flatnonzero(label.digits[:, index] >= 0)
                stream[label.position, rows, 10 * index + label.digits[rows, index]] += 1
    stream[..., -1] = 1
    return stream


def test_programs_without_reassignment_are_refused() -> None:
    with pytest.raises(BindscopeError, match="assign every variable once"):
        draw_reassignment(BindingTask(lines=8), construct_dereferencer(8, 2), 8, seed=0)
