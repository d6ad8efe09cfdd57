from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from bindscope.errors import BindscopeError
from bindscope.interventions.outcome import summarise_outcomes
from bindscope.interventions.own_metric import OwnMetric
from bindscope.measures.binding.patching import Grid, Patch, locate_sites, patch_model, patch_steps
from bindscope.studies.plots.outcomes import colour_scale, figure_summary
from bindscope.tasks.binding import named_positions
from interventions.causal_cases import dereferencer, random_model, sample_pairs

PAIRS = sample_pairs(8)


@pytest.mark.parametrize("grid", ["chain", "residual", "heads", "mlps"])
def test_a_patch_over_steps_is_the_same_patch_on_each_checkpoint(grid: Grid) -> None:
    models, patch = {0: random_model(0), 10: random_model(1)}, Patch(grid)
    dataset = patch_steps(models.__getitem__, (0, 10), PAIRS, patch)
    assert dataset.success.dims == ("step", *patch.dims, "pair")
    for step, model in models.items():
        assert dataset.kl.sel(step=step, drop=True).equals(patch_model(model, PAIRS, patch).kl)
    estimate = patch_model(models[0], PAIRS, dataclasses.replace(patch, approximate=True))
    assert estimate.logit_difference.dims == (*patch.dims, "pair")


def test_positions_of_one_site_are_columns_of_it() -> None:
    named = named_positions(PAIRS)
    sites, positions = locate_sites(["L1.H0@rhs 1", "L1.H0@query", "L0.mlp_out", "L2.resid_pre@4"], named)
    assert sites == ["L1.H0", "L0.mlp_out", "L2.resid_pre@4"]
    np.testing.assert_array_equal(positions["L1.H0"], np.stack([named["rhs 1"], named["query"]], axis=1))
    assert list(positions) == ["L1.H0"]
    with pytest.raises(BindscopeError, match="named twice"):
        locate_sites(["L0.mlp_out", "L0.mlp_out"], positions)


HOPS = {0: "rhs 1", 1: "rhs 1", 2: "rhs 2", 3: "rhs 3", 4: "query"}  # by construction: layer → where the value is


def hops_of(metric: OwnMetric | None = None) -> dict[int, str]:
    """Where a metric, success if none, is largest in each layer of the constructed transformer."""
    grid = patch_model(dereferencer(), sample_pairs(8, depth=3), Patch("chain", metric=metric))
    mean = grid["success" if metric is None else metric.name].mean("pair")
    return {int(layer): str(mean.position[int(mean.sel(layer=layer).values.argmax())].item()) for layer in HOPS}


def test_the_dereferencers_value_is_seen_hopping_along_the_chain() -> None:
    assert hops_of() == HOPS
    success = patch_model(dereferencer(), sample_pairs(8, depth=3), Patch("chain")).success.mean("pair")
    assert all(success.sel(layer=layer, position=position) == 1 for layer, position in HOPS.items())


def test_figures_of_fractions_can_be_laid_side_by_side() -> None:
    """Whatever the values, a fraction's colours run from 0 to 1, and changes that go both ways are centred on 0."""
    faint = np.array([[0.1, 0.2], [np.nan, 0.3]])
    assert colour_scale(faint, "success")[0] == (0, 1)
    low, high = colour_scale(-3 * faint, "logit_difference")[0]
    assert low == -high
    assert high >= 1
    summary = summarise_outcomes(
        patch_steps(lambda step: random_model(), (0,), PAIRS, Patch("chain")), np.random.default_rng(0)
    )
    (mesh,) = figure_summary(summary, "success", "title").axes[0].collections
    assert mesh.get_clim() == (0, 1)
