"""Sets of heads replaced one after another against running the whole model for each set."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bindscope.errors import BindscopeError
from bindscope.interventions import head_sets
from bindscope.interventions.contrast import Contrast
from bindscope.interventions.head_sets import head_sites, patch_head_sets, replace_head_sets
from bindscope.interventions.patching import patch_logits
from bindscope.model.config import ModelConfig
from bindscope.model.run import Edit, run
from bindscope.model.sites import Site
from bindscope.model.transformer import Transformer
from interventions.test_grids import N_POSITIONS, configs, make_model

AT = N_POSITIONS - 2
N_PAIRS = 7


def make_case(config: ModelConfig, seed: int) -> tuple[Transformer, Contrast, np.ndarray, list[list[tuple[int, int]]]]:
    generator = torch.Generator().manual_seed(seed)
    base, source = torch.randint(0, config.d_vocab, (2, N_PAIRS, N_POSITIONS), generator=generator)
    source[:, 2] = (base[:, 2] + 1) % config.d_vocab  # no pair is the same program twice
    answers = torch.zeros(N_PAIRS, dtype=torch.long)
    marks = torch.rand(N_PAIRS, N_POSITIONS, generator=generator) < 0.4
    marks[0] = False  # a pair of which nothing is changed
    heads = [(layer, head) for layer in range(config.n_layers) for head in range(config.n_heads)]
    chosen = [heads, heads[-1:], heads[:: 1 + seed % 3]]
    return make_model(config, seed), Contrast(base, source, answers, answers, AT), marks.numpy(), chosen


@settings(max_examples=30)
@given(configs(), st.integers(0, 99), st.sampled_from([0, 1 << 30]), st.sampled_from([3, 128]))
def test_patched_sets_equal_running_the_whole_model(config: ModelConfig, seed: int, room: int, rows: int) -> None:
    model, contrast, marks, sets = make_case(config, seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(head_sets, "KEPT_BYTES", room)
        patch.setattr(head_sets, "ROWS_AT_ONCE", rows)
        patched = patch_head_sets(model, contrast, marks)
        for heads in sets:
            sites = [f"L{layer}.H{head}" for layer, head in heads]
            expected = patch_logits(model, contrast, sites, positions=marks)
            torch.testing.assert_close(patched(heads), expected.patched)
        torch.testing.assert_close(patched([]), expected.base)


@settings(max_examples=20)
@given(configs(), st.integers(0, 99), st.booleans())
def test_heads_that_give_something_else_everywhere_equal_running_the_whole_model(
    config: ModelConfig, seed: int, zero: bool
) -> None:
    model, contrast, _, sets = make_case(config, seed)
    with torch.no_grad():
        source = run(model, contrast.source, read=head_sites(model)).values
        means = {site: value.mean(0, keepdim=True) for site, value in source.items()}
        stand = {site: torch.zeros_like(mean[0, 0, 0, 0]) if zero else mean for site, mean in means.items()}
        replaced = replace_head_sets(model, contrast.base, AT, stand)
        for heads in sets:
            by_layer = {site: [head for layer, head in heads if layer == site.layer] for site in means}
            write: dict[Site | str, Edit] = {
                site: put(by_layer[site], 0 * mean if zero else mean) for site, mean in means.items()
            }
            torch.testing.assert_close(replaced(heads), run(model, contrast.base, write=write).logits[:, AT])


def put(heads: list[int], value: torch.Tensor) -> Edit:
    """An edit for ``run``: some heads of a layer give ``value`` [1, position, head, …] instead."""

    def edit(old: torch.Tensor) -> torch.Tensor:
        new = old.clone()
        new[:, :, heads] = value[:, :, heads]
        return new

    return edit


def test_marks_that_do_not_fit_are_refused() -> None:
    model, contrast, marks, _ = make_case(ModelConfig(d_vocab=12, n_positions=N_POSITIONS, n_layers=1, d_model=8), 0)
    with pytest.raises(BindscopeError, match="true or false for each token"):
        patch_head_sets(model, contrast, marks[:3])
    assert np.isfinite(patch_head_sets(model, contrast, marks)([(0, 0)]).numpy()).all()
