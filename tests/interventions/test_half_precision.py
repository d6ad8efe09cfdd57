"""A model in bfloat16 is patched like any other, up to the three digits that bfloat16 has."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
import xarray as xr

from bindscope.interventions.attribution import attribute_heads, attribute_mlps, attribute_residual
from bindscope.interventions.circuit import find_circuit
from bindscope.interventions.contrast import Contrast, contrast_pairs
from bindscope.interventions.grids import head_grid, mlp_grid, position_grid, residual_grid
from bindscope.interventions.patching import patch_sites
from bindscope.interventions.paths import patch_path
from bindscope.model.transformer import Transformer
from bindscope.tasks.binding.structure import named_positions
from interventions.causal_cases import dereferencer, identity_model, random_model, sample_pairs

N_PAIRS, N_TOKENS = 24, 8
TOKENS = torch.randint(0, 40, (2, N_PAIRS, N_TOKENS), generator=torch.Generator().manual_seed(0))
ANSWERS = torch.arange(N_PAIRS)
CONTRAST = Contrast(TOKENS[0], TOKENS[1], ANSWERS, (ANSWERS + 7) % 40, at=N_TOKENS - 1)
POSITIONS = {"third": np.full(N_PAIRS, 2), "last": np.full(N_PAIRS, N_TOKENS - 1)}

MEASURES: dict[str, Callable[[Transformer], xr.Dataset]] = {
    "residual grid": lambda model: residual_grid(model, CONTRAST),
    "position grid": lambda model: position_grid(model, CONTRAST, POSITIONS),
    "head grid": lambda model: head_grid(model, CONTRAST),
    "MLP grid": lambda model: mlp_grid(model, CONTRAST),
    "patch": lambda model: patch_sites(model, CONTRAST, ["L1.H0", "L2.mlp_out"]),
    "path": lambda model: patch_path(model, CONTRAST, "embed", "final"),
    "attribution to the stream": lambda model: attribute_residual(model, CONTRAST),
    "attribution to heads": lambda model: attribute_heads(model, CONTRAST),
    "attribution to MLPs": lambda model: attribute_mlps(model, CONTRAST),
}


@pytest.mark.parametrize("make", [random_model, identity_model])
@pytest.mark.parametrize("name", MEASURES)
def test_half_precision_gives_the_numbers_of_single_precision_to_its_digits(name: str, make: Callable) -> None:
    """Numbers are normalised by the way from base to source, so pairs where it is short are left out."""
    model = make().float()
    whole, half = MEASURES[name](model), MEASURES[name](make().to(torch.bfloat16))
    with torch.no_grad():
        base, source = (model(tokens)[:, CONTRAST.at] for tokens in TOKENS)
    rows, way = torch.arange(N_PAIRS), source - base
    clear = ((way[rows, CONTRAST.source_answers] - way[rows, CONTRAST.base_answers]).abs() > 1).numpy()
    assert clear.sum() >= 6
    exact, rounded = (values.logit_difference.values[..., clear] for values in (whole, half))
    assert rounded.dtype == np.float32
    assert np.array_equal(np.isfinite(exact), np.isfinite(rounded))
    np.testing.assert_allclose(rounded, exact, rtol=0.1, atol=0.1)
    assert np.abs(rounded - exact).mean() < 0.02
    assert np.abs(exact).max() > 0.3


def test_the_constructed_circuit_is_found_in_half_precision() -> None:
    pairs = sample_pairs(8, 2)
    arguments = contrast_pairs(pairs), named_positions(pairs)
    moves = [find_circuit(dereferencer().to(kind), *arguments).moves for kind in (torch.float32, torch.bfloat16)]
    assert list(map(str, moves[1])) == list(map(str, moves[0]))
