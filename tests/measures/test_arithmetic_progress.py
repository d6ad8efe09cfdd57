"""The seven progress measures: on weights written by hand, and against loops over what the model itself does."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from bindscope.errors import BindscopeError
from bindscope.measures.arithmetic.forms import SumForms
from bindscope.measures.arithmetic.progress import (
    CONTROL,
    MEASURES,
    WEIGHT_MEASURES,
    draw_probes,
    measure_progress,
    measure_sequences,
    measure_weights,
)
from bindscope.model.run import run
from bindscope.model.transformer import Transformer
from bindscope.studies.framework.presets import find_preset
from measures.written_sums import TASK, written_forms

PROBES = draw_probes(TASK, np.random.default_rng(0), 40)
CONFIG = find_preset("assign-add").config


def fractions(forms: SumForms) -> dict[str, float]:
    return {name: fraction for name, (fraction, _) in measure_progress(forms, TASK, PROBES).items()}


def test_the_written_circuit_has_all_of_it():
    found = fractions(written_forms())
    assert {name: found[name] for name in MEASURES} == dict.fromkeys(MEASURES, 1.0)
    assert found[CONTROL] < 0.5


def test_a_missing_pair_of_neurons_costs_two_of_all_ordered_pairs():
    assert fractions(written_forms(broken_pair=True))["ov2_mlp2_accuracy"] == pytest.approx(23 / 25)


def test_a_forgotten_variable_costs_its_row_and_its_sums():
    found = fractions(written_forms(forgotten=(1,)))
    assert found["qk2_ov1_var_identity"] == 0.75
    assert 0.5 < found["attn_l2_equal_to_values"] < 1
    assert found["attn_l1_num_to_prev"] == found["probe_l1_var_from_num"] == 1


def test_looking_away_from_the_position_before_leaves_only_those_without_a_choice():
    """Positions 1 and 2 have one candidate each; the name can then not be read off the number."""
    found = fractions(written_forms(previous=-40))
    assert found["qk1_num_to_prev_var"] == pytest.approx(2 / 11)
    assert found["attn_l1_num_to_prev"] < 0.1
    assert found["attn_l1_equal_to_operands"] == 1


def test_a_name_that_is_not_copied_cannot_be_read_or_matched():
    found = fractions(written_forms(copies=False))
    assert found["probe_l1_var_from_num"] < 0.5
    assert found["attn_l2_equal_to_values"] < 0.6  # sums of two numbers need no name


def test_only_the_allowed_positions_compete():
    """Two before, itself, later and the operands may score as they like."""
    forms = written_forms()
    loud = forms.qk1.copy()
    for i in range(1, 12):
        for j in (i - 2, i, i + 1, 14):
            if j >= 0:
                loud += 1e3 * np.outer(forms.positions[i], forms.positions[j])
    fraction, n = measure_weights(dataclasses.replace(forms, qk1=loud), TASK)["qk1_num_to_prev_var"]
    assert (fraction, n) == (1.0, 11)
    louder = forms.qk1 + 1e3 * np.outer(forms.positions[7], forms.positions[4])
    fraction, _ = measure_weights(dataclasses.replace(forms, qk1=louder), TASK)["qk1_num_to_prev_var"]
    assert fraction == pytest.approx(10 / 11)


@pytest.fixture(scope="module")
def untrained() -> tuple[Transformer, SumForms]:
    """A model with scores large enough to have preferences."""
    config = dataclasses.replace(CONFIG.model, d_model=24, d_head=24, d_mlp=40)
    model = Transformer(config, torch.Generator().manual_seed(5)).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter *= 4
    return model, SumForms.of(model, CONFIG.task)


def test_weight_measures_are_those_of_plain_loops(untrained):
    _, forms = untrained
    task = CONFIG.task
    added = previous = matched = 0
    for a in range(59):
        for b in range(59):
            h = forms.ov2.T @ forms.numbers[a] + forms.ov2.T @ forms.numbers[b]
            outputs = forms.unembed.T @ (forms.down.T @ np.maximum(forms.up.T @ h, 0))
            added += outputs.argmax() == (a + b) % 59
    for i in range(1, 12):
        scores = {j: forms.positions[i] @ forms.qk1 @ forms.positions[j] for j in range(i) if j != i - 2}
        previous += max(scores, key=scores.__getitem__) == i - 1
    for i in range(12):
        row = [forms.variables[i] @ forms.ov1 @ forms.qk2 @ (forms.variables[j] @ forms.ov1) for j in range(12)]
        matched += int(np.argmax(row)) == i
    found = measure_weights(forms, task)
    assert found == {
        "ov2_mlp2_accuracy": (pytest.approx(added / 59**2), 59**2),
        "qk1_num_to_prev_var": (pytest.approx(previous / 11), 11),
        "qk2_ov1_var_identity": (pytest.approx(matched / 12), 12),
    }
    assert set(found) == set(WEIGHT_MEASURES)


def test_sequence_measures_are_those_of_the_model_run_on_each_sequence(untrained):
    model, forms = untrained
    task = CONFIG.task
    probes = draw_probes(task, np.random.default_rng(1), 12)
    with torch.no_grad():
        trace = run(model, torch.from_numpy(probes.tokens), read=["L0.pattern", "L1.pattern"])
    first, second = trace["L0.pattern"][:, 0].numpy(), trace["L1.pattern"][:, 0].numpy()
    at_operands, at_values, looks_back = [], [], []
    for row, tokens in enumerate(probes.tokens):
        sequence = task.locate(tokens)
        at_operands.append(set(np.argsort(first[row, 15])[-2:]) == {13, 14})
        if sum(operand.variable is not None for operand in sequence.operands) < 2:
            values = {operand.value_position for operand in sequence.operands}
            at_values.append(set(np.argsort(second[row, 15])[-2:]) == values)
        for assignment in sequence.assignments:
            looks_back.append(first[row, assignment.value_position].argmax() == assignment.position)
    found = measure_sequences(forms, probes)
    few = np.array(at_operands)[probes.n_variables < 2]
    assert found["attn_l1_equal_to_operands"] == (pytest.approx(np.mean(few)), 5 * 12)
    assert found["attn_l1_equal_to_operands_all"] == (pytest.approx(np.mean(at_operands)), 9 * 12)
    assert found["attn_l2_equal_to_values"] == (pytest.approx(np.mean(at_values)), 5 * 12)
    assert found["attn_l1_num_to_prev"] == (pytest.approx(np.mean(looks_back)), 9 * 12)
    assert 0 < np.mean(looks_back) < 1  # a measure that is always 0 or 1 would show nothing
    assert 0 < np.mean(at_values) < 1


def test_the_probe_is_a_ridge_regression_on_the_stream_of_other_sequences(untrained):
    model, forms = untrained
    task = CONFIG.task
    probes = draw_probes(task, np.random.default_rng(2), 60)
    streams, names = [], []
    for tokens in (probes.fit_tokens, probes.tokens):
        with torch.no_grad():
            stream = run(model, torch.from_numpy(tokens), read=["L0.resid_post"])["L0.resid_post"].numpy()
        positions = [(r, a) for r, row in enumerate(tokens) for a in task.locate(row).assignments]
        streams.append(np.array([stream[r, a.value_position] for r, a in positions]))
        names.append(np.array([task.sequences.variables.index(a.variable) for _, a in positions]))
    mean, size = streams[0].mean(0), np.sqrt(streams[0].var(0).mean())
    x, x_test = ((s - mean) / size for s in streams)
    centred = np.eye(12)[names[0]] - np.eye(12)[names[0]].mean(0)
    stacked = np.concatenate([x, np.sqrt(1e-3 * len(x)) * np.eye(x.shape[1])])  # the ridge as further rows
    weights, *_ = np.linalg.lstsq(stacked, np.concatenate([centred, np.zeros((x.shape[1], 12))]), rcond=None)
    outputs = x_test @ weights + np.eye(12)[names[0]].mean(0)
    expected = (outputs.argmax(1) == names[1]).mean()
    assert measure_sequences(forms, probes)["probe_l1_var_from_num"][0] == pytest.approx(expected, abs=2e-3)
    assert not {tuple(row) for row in probes.tokens.tolist()} & {tuple(row) for row in probes.fit_tokens.tolist()}


def test_parts_of_the_batch_do_not_change_a_number(untrained, monkeypatch):
    _, forms = untrained
    probes = draw_probes(CONFIG.task, np.random.default_rng(3), 10)
    whole = measure_sequences(forms, probes)
    monkeypatch.setattr("bindscope.measures.arithmetic.progress.ROWS_AT_ONCE", 7)
    assert measure_sequences(forms, probes) == whole


def test_no_sequences_are_refused():
    with pytest.raises(BindscopeError, match="at least 1"):
        draw_probes(TASK, np.random.default_rng(0), 0)
