from __future__ import annotations

import numpy as np
import pytest
import torch
import xarray as xr

from bindscope.errors import BindscopeError
from bindscope.interventions.attribution import (
    attribute_heads,
    attribute_mlps,
    attribute_positions,
    attribute_residual,
    compare_with_exact,
)
from bindscope.interventions.contrast import Contrast, contrast_pairs
from bindscope.interventions.patching import patch_sites
from bindscope.model.run import run
from bindscope.tasks.binding.structure import named_positions
from interventions.causal_cases import dereferencer, identity_model, random_model, sample_pairs

PAIRS = sample_pairs(5)
CONTRAST = contrast_pairs(PAIRS)


@pytest.mark.parametrize(
    ("attribute", "site", "cell"),
    [
        (attribute_residual, "L1.resid_pre@6", dict(layer=1, position=6)),
        (attribute_heads, "L1.H1.result", dict(layer=1, head=1)),
        (attribute_mlps, "L0.mlp_out", dict(layer=0)),
    ],
)
def test_an_attribution_is_the_slope_towards_the_source(attribute, site: str, cell: dict) -> None:  # type: ignore[no-untyped-def]
    """Oracle: the exact effect of a tiny step towards the source, scaled up to the whole way."""
    model, step = identity_model(), 1e-6
    found = attribute(model, CONTRAST).sel(cell)
    small = patch_sites(model, CONTRAST, [site], edit=lambda base, source: base + step * (source - base))
    for metric in ("logit_difference", "new_logit"):
        np.testing.assert_allclose(found[metric], small[metric] / step, rtol=1e-3, atol=1e-5)


def test_where_the_model_is_linear_the_attribution_is_exact() -> None:
    """The last MLP's output and, without LayerNorm, the logits lie on one line."""
    model = random_model(norm="none")
    guess = attribute_mlps(model, CONTRAST).sel(layer=2)
    np.testing.assert_allclose(
        guess.logit_difference, patch_sites(model, CONTRAST, ["L2.mlp_out"]).logit_difference, atol=1e-9
    )


def test_places_are_columns_of_the_residual_grid() -> None:
    model, positions = random_model(), named_positions(PAIRS)
    grid, whole = attribute_positions(model, CONTRAST, positions), attribute_residual(model, CONTRAST)
    for pair, column in enumerate(positions["rhs 2"]):
        cell = grid.logit_difference.sel(position="rhs 2").isel(pair=pair)
        if column < 0:
            assert cell.isnull().all()
        else:
            assert (cell == whole.logit_difference.sel(position=column).isel(pair=pair)).all()


def test_marks_split_a_heads_effect_over_positions() -> None:
    model, marks = random_model(), np.zeros(CONTRAST.base.shape, bool)
    marks[:, ::2] = True
    parts = [attribute_heads(model, CONTRAST, at_positions=chosen).new_logit for chosen in (marks, ~marks)]
    np.testing.assert_allclose(parts[0] + parts[1], attribute_heads(model, CONTRAST).new_logit, atol=1e-9)


def test_weights_that_want_no_gradient_and_a_surrounding_no_grad_change_nothing() -> None:
    model = random_model()
    expected = attribute_heads(model, CONTRAST)
    for weight in model.parameters():
        weight.requires_grad_(False)
    with torch.no_grad():
        assert attribute_heads(model, CONTRAST).equals(expected)
        run(model, CONTRAST.base)  # nothing stays behind


def test_a_saturated_attention_hides_the_mechanism_from_gradients() -> None:
    """The dereferencer's keys choose all or nothing: a gradient sees values move, and the comparison says how well."""
    pairs = sample_pairs(10, depth=2)
    contrast, positions = contrast_pairs(pairs), named_positions(pairs)
    exact = exact_positions(dereferencer(), contrast, positions)
    agreement = compare_with_exact(attribute_positions(dereferencer(), contrast, positions), exact, top=4)
    assert agreement.n_cells == exact.sizes["layer"] * exact.sizes["position"]
    assert agreement.correlation > 0.95


def exact_positions(model, contrast: Contrast, positions: dict[str, np.ndarray]) -> xr.Dataset:  # type: ignore[no-untyped-def]
    layers = []
    for layer in range(model.config.n_layers):
        cells = [patch_sites(model, contrast, [f"L{layer}.resid_pre"], positions=p) for p in positions.values()]
        layers.append(xr.concat(cells, dim=xr.DataArray(list(positions), dims="position", name="position")))
    return xr.concat(layers, dim=xr.DataArray(range(len(layers)), dims="layer", name="layer"))


def test_the_comparison_measures_what_it_says() -> None:
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(3, 4, 7))
    truth[0, 0] = 0

    def grid(values: np.ndarray) -> xr.Dataset:
        return xr.Dataset({"logit_difference": (("layer", "head", "pair"), values)})

    exact = compare_with_exact(grid(truth), grid(truth))
    assert (exact.correlation, exact.mean_absolute_error, exact.top_overlap) == (pytest.approx(1), 0, 1)
    shifted = compare_with_exact(grid(truth + 0.5), grid(truth), top=3)
    assert shifted.mean_absolute_error == pytest.approx(0.5)
    assert shifted.correlation == pytest.approx(1)
    turned = compare_with_exact(grid(-truth), grid(truth))
    assert (turned.sign_agreement, turned.correlation, turned.top_overlap) == (0, pytest.approx(-1), 1)
    half = truth.copy()
    half[:, :2] *= -1
    means = truth.mean(2)[np.abs(truth.mean(2)) > 0.01]
    wrong = np.abs(truth.mean(2)[:, :2]) > 0.01
    agreement = compare_with_exact(grid(half), grid(truth))
    assert agreement.sign_agreement == pytest.approx(1 - wrong.sum() / len(means))
    with pytest.raises(BindscopeError, match="equal cells"):
        compare_with_exact(grid(truth[:2]), grid(truth))
    with pytest.raises(BindscopeError, match="approximates"):
        compare_with_exact(grid(truth), grid(truth), metric="kl")
