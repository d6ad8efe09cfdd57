"""Grids that leave out what the answer hardly feels: exact without a tolerance, the base run with an endless one, checked between."""

from unittest.mock import patch

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bindscope.errors import BindscopeError
from bindscope.interventions import columns
from bindscope.interventions.checked import Check
from bindscope.interventions.columns import residual_columns, site_layers
from bindscope.interventions.contrast import contrast_pairs
from bindscope.interventions.engine import run_whole
from bindscope.interventions.grids import position_grid, residual_grid
from bindscope.interventions.tolerant import Tolerance, logit_slopes, run_within
from bindscope.model.config import ModelConfig
from bindscope.model.run import run
from bindscope.runs.directory import Run
from bindscope.runs.locate import find_run
from bindscope.tasks.binding.structure import named_positions
from interventions.causal_cases import random_model, sample_pairs
from interventions.test_grids import SITES, configs, make_contrast, make_model


def all_logits(model, contrast, **options):
    """[layer, pair, position, output]"""
    logits = torch.full((model.config.n_layers, *contrast.base.shape, model.config.outputs), torch.nan).double()
    for found in residual_columns(model, contrast, **options):
        logits[: len(found.logits), found.pairs, found.positions] = found.logits.double()
    return logits


@settings(max_examples=25)
@given(configs(), st.integers(0, 99), st.sampled_from(SITES))
def test_a_tiny_tolerance_gives_the_exact_grid(config, seed, site):
    model, contrast = make_model(config, seed), make_contrast(config, seed)
    try:
        site_layers(model, site)
    except BindscopeError:
        site = "resid_pre"
    exact, near = (all_logits(model, contrast, site=site, tolerance=tolerance) for tolerance in (0.0, 1e-12))
    torch.testing.assert_close(near, exact, rtol=0, atol=1e-7, equal_nan=True)


@settings(max_examples=25)
@given(configs(), st.integers(0, 99))
def test_with_an_endless_tolerance_nothing_changes(config, seed):
    model, contrast = make_model(config, seed), make_contrast(config, seed)
    kept = run_whole(model, contrast.base, contrast.at, also=("z",))
    first = kept.n_positions // 2 if config.causal else 0
    slopes = logit_slopes(model, contrast.base, contrast.source, contrast.at)
    streams = kept.stream[0][None, :, first:] + 1.0
    logits = run_within(Tolerance(1e30, slopes), kept, first, {0: streams})
    torch.testing.assert_close(logits[0], kept.logits)


def test_without_a_tolerance_nothing_of_it_runs():
    model, contrast = random_model(), contrast_pairs(sample_pairs(3))
    exact = all_logits(model, contrast)
    refuse = pytest.fail
    with patch.object(columns, "run_within", refuse), patch.object(columns, "logit_slopes", refuse):
        same = all_logits(model, contrast, tolerance=0.0)
    assert torch.equal(exact.nan_to_num(), same.nan_to_num())
    assert "tolerance" not in residual_grid(model, contrast).attrs


def test_slopes_are_those_of_small_steps():
    config = ModelConfig(d_vocab=9, n_positions=8, d_out=1, n_layers=3, n_heads=2, d_model=8, d_head=4, d_mlp=12)
    model, tokens, at, step = make_model(config), torch.arange(8)[None], 6, 1e-6
    slopes = logit_slopes(model, tokens, tokens, at)  # [layer, 1, position]
    assert slopes.shape == (4, 1, 7)
    for layer, position in [(0, 0), (1, 3), (2, 6)]:
        nudge = torch.zeros(8, 1, tokens.shape[1], 8).double()
        nudge[torch.arange(8), 0, position, torch.arange(8)] = step
        there, here = (
            [run(model, tokens, (), {f"L{layer}.resid_pre": lambda x, n=n: x + n}).logits[0, at, 0] for n in nudges]
            for nudges in (nudge, -nudge)
        )
        by_steps = (torch.stack(there) - torch.stack(here)).norm() / (2 * step)
        assert slopes[layer, 0, position].item() == pytest.approx(by_steps.item(), rel=1e-5)


@pytest.mark.parametrize("name", ["binding-plain", "binding-laptop", None])  # None: random weights
def test_the_stated_error_is_that_of_the_exact_grid_at_the_checked_cells(name):
    model = random_model() if name is None else Run.open(find_run(name)).checkpoint()
    contrast = contrast_pairs(sample_pairs(6))
    near = residual_grid(model, contrast, tolerance=1e-3)
    everywhere = (all_logits(model, contrast, tolerance=1e-3) - all_logits(model, contrast)).abs()
    changing = torch.arange(contrast.base.shape[1]) >= contrast.first_difference[:, None]
    checked = Check(contrast, changing).chosen
    assert 0 < checked.sum() < changing.sum()
    assert near.attrs["n_checked"] == model.config.n_layers * int(checked.sum())
    assert near.attrs["error_of_logits"] == pytest.approx(float(everywhere[:, checked].max()), abs=1e-5)
    assert float(everywhere.nan_to_num().max()) < 2e-2  # a tolerance is no bound, but it is no far cry from one either
    exact = residual_grid(model, contrast)
    some = checked.T.numpy()
    for metric in map(str, exact.data_vars):
        worst = np.nanmax(np.abs(near[metric].values - exact[metric].values)[:, some], initial=0.0)
        assert near.attrs[f"error_of_{metric}"] == pytest.approx(float(worst), abs=1e-5)


def test_a_coarse_tolerance_is_off_and_says_so():
    """A control: the error is measured, not promised."""
    model, contrast = Run.open(find_run("binding-plain")).checkpoint(), contrast_pairs(sample_pairs(6))
    fine, coarse = (residual_grid(model, contrast, tolerance=amount).attrs for amount in (1e-6, 100.0))
    assert fine["error_of_logits"] < 1e-3
    assert coarse["error_of_logits"] > 1
    assert coarse["error_of_logit_difference"] > 0.1


def test_named_positions_take_a_tolerance_too():
    pairs = sample_pairs(4)
    contrast = contrast_pairs(pairs)
    exact = position_grid(random_model(), contrast, named_positions(pairs))
    near = position_grid(random_model(), contrast, named_positions(pairs), tolerance=1e-6)
    np.testing.assert_allclose(near.logit_difference.values, exact.logit_difference.values, atol=1e-3)
    assert near.attrs["tolerance"] == 1e-6
    assert near.attrs["n_checked"] > 0


@pytest.mark.parametrize("tolerance", [-1e-5, float("inf"), float("nan")])
def test_a_tolerance_that_is_no_number_of_logits_is_refused(tolerance):
    with pytest.raises(BindscopeError, match="tolerance: a number of logits"):
        residual_grid(random_model(), contrast_pairs(sample_pairs(1)), tolerance=tolerance)
