"""Grids that leave out what hardly changed: exact without a tolerance, the base run with an endless one, checked between."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

from bindscope.errors import BindscopeError
from bindscope.interventions.contrast import contrast_pairs
from bindscope.interventions.engine import run_changed, run_whole
from bindscope.interventions.grids import position_grid, residual_grid
from bindscope.model.config import ModelConfig
from bindscope.tasks.binding.structure import named_positions
from interventions.causal_cases import dereferencer, random_model, sample_pairs
from interventions.test_grids import configs, make_contrast, make_model


def largest_difference(first: xr.Dataset, second: xr.Dataset) -> float:
    return max(float(np.nanmax(np.abs(first[name].values - second[name].values))) for name in first.data_vars)


@settings(max_examples=40)
@given(configs(), st.integers(0, 99))
def test_a_tiny_tolerance_gives_the_exact_grid(config: ModelConfig, seed: int) -> None:
    model, contrast = make_model(config, seed), make_contrast(config, seed)
    exact, near = residual_grid(model, contrast), residual_grid(model, contrast, tolerance=1e-13)
    np.testing.assert_array_equal(near.success.values, exact.success.values)
    assert largest_difference(near, exact) < 1e-5  # metrics are stored in single precision


@settings(max_examples=40)
@given(configs(), st.integers(0, 99))
def test_with_an_endless_tolerance_nothing_moves(config: ModelConfig, seed: int) -> None:
    model, contrast = make_model(config, seed), make_contrast(config, seed)
    kept = run_whole(model, contrast.base, contrast.at, tolerance=1e9)
    first = kept.n_positions // 2 if config.causal else 0
    streams = kept.stream[0][:, None, first:] + 1.0
    torch.testing.assert_close(run_changed(kept, first, {0: streams})[:, 0], kept.logits)


def test_the_stated_error_is_that_of_the_checked_columns() -> None:
    model, contrast = dereferencer(), contrast_pairs(sample_pairs(2))  # 2 × 23 columns, so that some are not checked
    exact = residual_grid(model, contrast)
    near = residual_grid(model, contrast, tolerance=0.05)
    assert near.attrs["n_checked"] == 32
    for name in map(str, exact.data_vars):
        worst = float(np.nanmax(np.abs(near[name].values - exact[name].values)))
        assert 0 <= near.attrs[f"error_of_{name}"] <= worst


def test_a_coarse_tolerance_is_off_and_says_so() -> None:
    """A control: the error is measured, not promised."""
    model, contrast = random_model(), contrast_pairs(sample_pairs())
    errors = [residual_grid(model, contrast, tolerance=t).attrs["error_of_logit_difference"] for t in (1e-6, 0.5)]
    assert errors[0] < 1e-3 < errors[1]


def test_named_positions_take_a_tolerance_too() -> None:
    model, pairs = dereferencer(), sample_pairs()
    contrast = contrast_pairs(pairs)
    exact = position_grid(model, contrast, named_positions(pairs))
    near = position_grid(model, contrast, named_positions(pairs), tolerance=1e-6)
    np.testing.assert_array_equal(near.success.values, exact.success.values)
    assert near.attrs["tolerance"] == 1e-6


@pytest.mark.parametrize("tolerance", [-1e-5, 1.0, float("nan")])
def test_a_tolerance_that_is_no_fraction_is_refused(tolerance: float) -> None:
    with pytest.raises(BindscopeError, match="tolerance"):
        residual_grid(dereferencer(), contrast_pairs(sample_pairs(1)), tolerance=tolerance)
