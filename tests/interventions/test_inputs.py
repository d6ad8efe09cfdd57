"""Queries, keys and values as nodes: exact patches held to whole runs, the corrections of AtP* to known answers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bindscope.errors import BindscopeError
from bindscope.interventions.edges import attribute_edges
from bindscope.interventions.inputs import attribute_inputs, patch_inputs
from bindscope.interventions.patching import patch_sites
from bindscope.interventions.paths import patch_path
from bindscope.interventions.slopes import METHODS, drop_gradients
from bindscope.model.config import InitConfig, ModelConfig
from bindscope.model.run import run
from bindscope.model.sites import Site
from interventions.test_grids import configs, make_contrast, make_model

ARCHITECTURES = {
    "plain": {},
    "learned positions": {"positions": "learned", "norm": "rms"},
    "parallel": {"parallel": True, "activation": "silu", "gated": True},
    "no norm": {"norm": "none", "activation": "relu"},
    "bidirectional": {"causal": False, "n_kv_heads": 1},
}


def without_identity(config: ModelConfig, **more: object) -> ModelConfig:
    """A site's q and k are then all that a head's scores read."""
    return replace(config, identity_qk=False, identity_vo=False, **more)  # type: ignore[arg-type]


def linear_behind(config: ModelConfig) -> ModelConfig:
    """Behind the last pattern everything is linear: no norm, and no MLP in the last layer."""
    return without_identity(config, norm="none", n_layers=max(2, config.n_layers), mlp_layers=(0,))


@settings(max_examples=15)
@given(configs().map(without_identity), st.integers(0, 99))
def test_patched_inputs_are_those_of_whole_runs(config: ModelConfig, seed: int) -> None:
    model, contrast = make_model(config, seed), make_contrast(config, seed)
    found = patch_inputs(model, contrast)
    rng = np.random.default_rng(seed)
    for side in "qkv":
        layer, head = int(rng.integers(config.n_layers)), int(rng.integers(config.n_heads))
        expected = patch_sites(model, contrast, [f"L{layer}.H{head}.{side}"])
        for name in ("logit_difference", "kl"):
            cell = found[name].sel(side=side, layer=layer, head=head)
            np.testing.assert_allclose(cell, expected[name], rtol=1e-5, atol=1e-7)


@settings(max_examples=10)
@given(configs().map(without_identity), st.integers(0, 99))
def test_the_gradient_is_the_slope_towards_the_source(config: ModelConfig, seed: int) -> None:
    model, contrast, step = make_model(config, seed), make_contrast(config, seed), 1e-6
    found = attribute_inputs(model, contrast).logit_difference
    for side in "qkv":
        site = f"L0.H{config.n_heads - 1}.{side}"
        small = patch_sites(model, contrast, [site], edit=lambda base, source: base + step * (source - base))
        cell = found.sel(side=side, layer=0, head=config.n_heads - 1)
        np.testing.assert_allclose(cell, small.logit_difference / step, rtol=1e-2, atol=1e-4)


@settings(max_examples=15)
@given(configs().map(linear_behind), st.integers(0, 99))
def test_the_qk_fix_is_exact_where_only_softmax_bends(config: ModelConfig, seed: int) -> None:
    model, contrast = make_model(config, seed), make_contrast(config, seed)
    last = config.n_layers - 1
    found = attribute_inputs(model, contrast, "qk").logit_difference
    for side in "qkv":
        expected = patch_sites(model, contrast, [f"L{last}.H0.{side}"]).logit_difference
        np.testing.assert_allclose(found.sel(side=side, layer=last, head=0), expected, rtol=1e-6, atol=1e-9)
    edges = attribute_edges(model, contrast, n_points=1, method="qk").effect
    for side in "qk":
        expected = patch_path(model, contrast, "L0.mlp_out", f"L{last}.H0.{side}").logit_difference
        np.testing.assert_allclose(
            edges.sel(sender="L0.mlp_out", receiver=f"L{last}.H0.{side}"), expected, rtol=1e-6, atol=1e-9
        )


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_the_qk_fix_is_no_further_off_than_the_gradient_on_average(name: str) -> None:
    config = ModelConfig(
        9, 8, **{"n_layers": 3, "n_heads": 2, "d_model": 16, "d_head": 8, "d_mlp": 16, "init": InitConfig("fan_in", gain=1.5), **ARCHITECTURES[name]}
    )  # fmt: skip
    errors = {method: [] for method in ("gradient", "qk")}
    for seed in range(8):
        model, contrast = make_model(config, seed), make_contrast(config, seed)
        exact = patch_inputs(model, contrast).logit_difference.sel(side=["q", "k"])
        for method, found in errors.items():
            guess = attribute_inputs(model, contrast, method).logit_difference.sel(side=["q", "k"])
            found.append(float(np.abs(guess - exact).mean()))
    assert np.mean(errors["qk"]) < np.mean(errors["gradient"])


@settings(max_examples=8)
@given(configs().map(without_identity), st.integers(0, 99))
def test_graddrop_is_the_mean_slope_with_one_other_layer_frozen(config: ModelConfig, seed: int) -> None:
    """Oracle: a tiny step of the node towards the source, with a layer's outputs written back to those of the base run."""
    config = replace(config, n_layers=3, mlp_layers=(0, 2))
    model, contrast, step, layer = make_model(config, seed), make_contrast(config, seed), 1e-6, 1
    site = Site("v", layer, 0)
    outputs = {0: ["attn_out", "mlp_out"], 2: ["attn_out", "mlp_out"]}
    with torch.no_grad():
        base = run(model, contrast.base, [site, *(Site(name, at) for at, names in outputs.items() for name in names)])
        source = run(model, contrast.source, [site])

        def margin(trace):
            logits, pairs = trace.logits[:, contrast.at], torch.arange(len(contrast))
            return logits[pairs, contrast.source_answers] - logits[pairs, contrast.base_answers]

        slopes = []
        for frozen, names in outputs.items():
            sites = [Site(name, frozen) for name in names]
            write = {still: lambda old, still=still: base[still] for still in sites}
            write[site] = lambda old: old + step * (source[site] - old)
            slopes.append(((margin(run(model, contrast.base, write=write)) - margin(base)) / step).abs())
        expected = (sum(slopes) / 2 / (margin(source) - margin(base)).abs()).numpy()
    found = attribute_inputs(model, contrast, "graddrop").logit_difference.sel(side="v", layer=layer, head=0)
    np.testing.assert_allclose(np.abs(found), expected, rtol=1e-2, atol=1e-4)


def test_graddrop_sees_what_cancels_and_leaves_a_lone_layer_as_it_is() -> None:
    ways = {0: torch.tensor([[0.0], [3.0]]), 1: torch.tensor([[-2.0], [0.0]])}  # a direct way and one through a layer
    plain = torch.tensor([[0.0], [-1.0]])
    found = drop_gradients(plain, ways.__getitem__, [0, 1])
    assert found.tolist() == [[2.0], [-3.0]]  # each without the other's layer; the sign is the gradient's
    assert drop_gradients(torch.tensor([[5.0]]), lambda layer: torch.zeros(1, 1), [0]).tolist() == [[5.0]]


def test_methods_agree_where_nothing_is_to_be_corrected() -> None:
    """Values of the last layer, without norm and MLP: linear, and with one other layer below nothing to drop."""
    config = linear_behind(ModelConfig(9, 8, n_layers=2, n_heads=2, d_model=8, d_head=4, d_mlp=8))
    model, contrast = make_model(config), make_contrast(config)
    found = [
        attribute_inputs(model, contrast, method).logit_difference.sel(side="v", layer=1).values for method in METHODS
    ]
    for other in found[1:]:
        np.testing.assert_allclose(other, found[0], rtol=1e-9)


def test_an_unknown_method_is_refused() -> None:
    config = ModelConfig(9, 8, n_layers=1, n_heads=1, d_model=8, d_head=4, d_mlp=8)
    for attribute in (attribute_inputs, attribute_edges):
        with pytest.raises(BindscopeError, match="atp-star"):
            attribute(make_model(config), make_contrast(config), method="magic")  # type: ignore[arg-type]
