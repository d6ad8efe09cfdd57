"""A metric of one's own is measured like those that come with Bindscope, cell by cell as whole runs would give it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bindscope.errors import BindscopeError
from bindscope.interventions.contrast import contrast_pairs
from bindscope.interventions.grids import head_grid, mlp_grid, position_grid, residual_grid
from bindscope.interventions.outcome import summarise_outcomes
from bindscope.interventions.own_metric import Answers, own_metric
from bindscope.interventions.patching import patch_sites
from bindscope.interventions.paths import patch_path
from bindscope.model.run import run
from bindscope.tasks.binding import named_positions
from interventions.causal_cases import random_model, sample_pairs
from interventions.naive import naive_logits, only
from interventions.test_grids import configs, everywhere, make_contrast, make_model, sites_of

MODEL, PAIRS = random_model(), sample_pairs(6)
CONTRAST = contrast_pairs(PAIRS)


def my_success(patched, base, source, answers):
    return patched.argmax(-1) == answers.source


def my_difference(patched, base, source, answers):
    rows = torch.arange(len(answers.base))
    start, value, end = (
        logits[rows, answers.source] - logits[rows, answers.base] for logits in (base, patched, source)
    )
    return (value - start) / (end - start)


def distance(patched, base, source, answers):
    """Uses all it is given, and nothing of the five metrics."""
    old, new = answers
    return (patched - base).norm(dim=-1) - 2 * (patched - source).norm(dim=-1) + old - 0.5 * new


def measured_everywhere(metric):
    yield residual_grid(MODEL, CONTRAST, metric=metric)
    yield position_grid(MODEL, CONTRAST, named_positions(PAIRS), metric=metric)
    yield head_grid(MODEL, CONTRAST, metric=metric)
    yield mlp_grid(MODEL, CONTRAST, metric=metric)
    yield patch_sites(MODEL, CONTRAST, ["L1.H0", "L2.mlp_out"], metric=metric)
    yield patch_path(MODEL, CONTRAST, "L0.H1", "L2.H0.k", metric=metric)


@pytest.mark.parametrize(("mine", "theirs"), [(my_success, "success"), (my_difference, "logit_difference")])
def test_an_existing_metric_written_again_has_the_same_grid(mine, theirs):
    for grid in measured_everywhere(mine):
        np.testing.assert_array_equal(grid[mine.__name__].values, grid[theirs].values)
        summary = summarise_outcomes(grid, np.random.default_rng(0))
        for end in ("", "_low", "_high"):
            np.testing.assert_array_equal(summary[f"{mine.__name__}{end}"].values, summary[f"{theirs}{end}"].values)


def test_the_other_metrics_are_what_they_are_without_it():
    for with_it, without in zip(measured_everywhere(distance), measured_everywhere(None)):
        assert with_it.drop_vars("distance").equals(without)


@settings(max_examples=10)
@given(configs(), st.integers(0, 99))
def test_every_cell_of_a_grid_is_the_metric_of_a_whole_run(config, seed):
    model, contrast = make_model(config, seed), make_contrast(config, seed)
    base, source = (run(model, rows).logits[:, contrast.at].detach() for rows in (contrast.base, contrast.source))
    answers = Answers(contrast.base_answers, contrast.source_answers)

    def naive(sites, marks):
        return [distance(each, base, source, answers).numpy() for each in naive_logits(model, contrast, sites, marks)]

    def same(grid, expected):
        np.testing.assert_allclose(grid.distance.values, np.stack(expected), atol=1e-4, rtol=1e-5)

    columns = [naive(sites_of(model, "resid_pre"), only(position, contrast)) for position in range(8)]
    same(residual_grid(model, contrast, metric=distance), np.swapaxes(columns, 0, 1))
    heads = [[f"L{layer}.H{head}.result" for head in range(config.n_heads)] for layer in range(config.n_layers)]
    same(head_grid(model, contrast, metric=distance), [naive(row, everywhere(contrast)) for row in heads])
    same(mlp_grid(model, contrast, metric=distance), naive(sites_of(model, "mlp_out"), everywhere(contrast)))


def test_what_it_changes_in_place_no_other_cell_sees():
    def spoils(patched, base, source, answers):
        values = distance(patched, base, source, answers)
        for each in (patched, base, source, *answers):
            each.zero_()
        return values

    for spoiled, plain in zip(measured_everywhere(spoils), measured_everywhere(distance)):
        np.testing.assert_array_equal(spoiled.spoils.values, plain.distance.values)
        assert spoiled.kl.equals(plain.kl)


def test_a_pair_without_the_position_is_missing():
    grid = position_grid(MODEL, CONTRAST, {"some": np.array([2, -1, 4, 2, -1, 2])}, metric=distance)
    np.testing.assert_array_equal(np.isnan(grid.distance.values), np.isnan(grid.success.values))
    assert np.isnan(grid.distance.values).any()


def test_only_a_function_with_a_name_is_a_metric():
    with pytest.raises(BindscopeError, match="a function of logits is needed, got a float"):
        own_metric(0.5)
    with pytest.raises(BindscopeError, match="define it with def"):
        own_metric(lambda patched, base, source, answers: patched[:, 0])
    with pytest.raises(BindscopeError, match=r"^metric 'nothing': it must return a tensor .* it returned nothing\.$"):
        head_grid(MODEL, CONTRAST, metric=typed())


def typed():
    """A function as a notebook has it: in no file."""
    names = {}
    exec("def nothing(*given): ...", names)
    return names["nothing"]
