"""Interventions on parallel, gated, RMSNorm and grouped-head models, against runs written out by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bindscope.errors import BindscopeError
from bindscope.interventions.attribution import attribute_heads, attribute_mlps, attribute_residual
from bindscope.interventions.circuit import _Search
from bindscope.interventions.contrast import contrast_pairs
from bindscope.interventions.knockout import Edge, cut_edits
from bindscope.interventions.outcome import measure_outcomes
from bindscope.interventions.patching import patch_sites
from bindscope.interventions.paths import patch_path
from bindscope.model.config import ModelConfig
from bindscope.model.run import run
from bindscope.model.transformer import Transformer
from bindscope.tasks.binding.structure import named_positions
from interventions.causal_cases import random_model, sample_pairs
from interventions.test_grids import configs, make_contrast, make_model

ARCHITECTURES = {
    "parallel": {"parallel": True},
    "gated": {"gated": True, "activation": "silu"},
    "grouped heads": {"n_heads": 4, "n_kv_heads": 2},
    "llama": {"n_heads": 4, "n_kv_heads": 1, "norm": "rms", "gated": True, "activation": "silu", "bias": False},
    "all at once": {"n_heads": 4, "n_kv_heads": 2, "norm": "rms", "gated": True, "parallel": True},
}
PAIRS = sample_pairs(6)
CONTRAST = contrast_pairs(PAIRS)

each_architecture = pytest.mark.parametrize("changes", ARCHITECTURES.values(), ids=ARCHITECTURES.keys())


@settings(max_examples=25)
@given(configs(), st.integers(0, 99))
def test_patching_all_that_a_part_reads_gives_what_it_writes_in_the_counterfactual_run(
    config: ModelConfig, seed: int
) -> None:
    model, contrast = make_model(config, seed), make_contrast(config, seed)
    cuts = [(f"L{layer}.resid_pre", f"L{layer}.resid_post") for layer in range(config.n_layers)]
    cuts += [("final", "logits"), (f"L{config.n_layers - 1}.resid_post", "logits")]
    for layer in range(config.n_layers):
        cuts += [(f"L{layer}.{reads}", f"L{layer}.{writes}") for reads, writes in _cuts_of(config, layer)]
    for reads, writes in cuts:
        assert_carries(model, contrast, reads.split(" "), writes)


def _cuts_of(config: ModelConfig, layer: int) -> list[tuple[str, str]]:
    cuts = [("result", "attn_out")]
    if not (config.identity_qk or config.identity_vo):
        rotated = [(f"rot_q L{layer}.rot_k L{layer}.v", "z")] if config.positions == "rope" else []
        cuts += [(f"q L{layer}.k L{layer}.v", "z"), (f"pattern L{layer}.v", "z"), ("z", "attn_out"), *rotated]
    if layer in config.layers_with_mlp:
        cuts += [(f"pre L{layer}.pre_linear" if config.gated else "pre", "post"), ("post", "mlp_out")]
        cuts += [(f"resid_pre L{layer}.mlp_out" if config.parallel else "resid_mid", "resid_post")]
    return cuts


@torch.no_grad()
def assert_carries(model: Transformer, contrast, reads: list[str], writes: str) -> None:  # type: ignore[no-untyped-def]
    read = [] if writes == "logits" else [writes]
    source = run(model, contrast.source, [*reads, *read])
    changed = run(model, contrast.base, read, {site: source[site] for site in reads})
    found, expected = (trace[writes] if read else trace.logits for trace in (changed, source))
    torch.testing.assert_close(found, expected, msg=lambda text: f"{reads} to {writes}: {text}")


@settings(max_examples=15)
@given(configs(), st.integers(0, 99))
def test_patching_every_site_equals_the_counterfactual_run(config: ModelConfig, seed: int) -> None:
    model, contrast = make_model(config, seed), make_contrast(config, seed)
    sites = ["embed", *(f"L{layer}.resid_post" for layer in range(config.n_layers)), "final"]
    sites += [f"L{layer}.{name}" for layer in range(config.n_layers) for name in ("q", "k", "v", "result", "attn_out")]
    inside = ["pre", "post", "mlp_out", *["pre_linear"] * config.gated, *["resid_mid"] * (not config.parallel)]
    sites += [f"L{layer}.{name}" for layer in config.layers_with_mlp for name in inside]
    with torch.no_grad():
        source = run(model, contrast.source, sites)
        changed = run(model, contrast.base, write={site: source[site] for site in sites})
    torch.testing.assert_close(changed.logits, source.logits)


def sent_directly(model: Transformer, sender: str, entry: str) -> torch.Tensor:
    base, source = (run(model, tokens, [sender, entry]) for tokens in (CONTRAST.base, CONTRAST.source))
    return base[entry] + source[sender] - base[sender]


def outcome_of(model: Transformer, write: dict) -> dict[str, np.ndarray]:  # type: ignore[type-arg]
    logits = [run(model, CONTRAST.base, write=write).logits, model(CONTRAST.base), model(CONTRAST.source)]
    return measure_outcomes(*(values[:, CONTRAST.at] for values in logits), CONTRAST)


@torch.no_grad()
@pytest.mark.parametrize("side", ["q", "k", "v"])
@each_architecture
def test_a_head_hears_the_sender_through_one_of_its_inputs(changes: dict, side: str) -> None:  # type: ignore[type-arg]
    """Oracle: the head's own weights on the changed stream; a head that shares its keys hears alone."""
    model = random_model(n_layers=4, **changes)
    attention = model.layers[2].attention
    weight = getattr(attention, f"W_{side.upper()}")[1]
    bias = 0 if attention.qkv.bias is None else attention.split_rows(attention.qkv.bias)["qkv".index(side)][1]
    for sender in ("L0.H1.result", "L0.mlp_out", "embed"):
        stream = model.layers[2].norm1(sent_directly(model, sender, "L2.resid_pre"))
        expected = outcome_of(model, {f"L2.H1.{side}": stream @ weight + bias})
        found = patch_path(model, CONTRAST, sender, f"L2.H1.{side}")
        np.testing.assert_allclose(found.logit_difference, expected["logit_difference"], atol=1e-6)
        assert np.abs(found.logit_difference).max() > 1e-6


@torch.no_grad()
@each_architecture
def test_an_mlp_hears_what_it_would_compute_from_the_changed_stream(changes: dict) -> None:  # type: ignore[type-arg]
    model = random_model(**changes)
    entry = "L1.resid_pre" if model.config.parallel else "L1.resid_mid"
    stream = sent_directly(model, "L0.H1.result", entry)
    value = run(model, CONTRAST.base, ["L1.mlp_out"], {entry: stream})["L1.mlp_out"]
    found = patch_path(model, CONTRAST, "L0.H1", "L1.mlp_out")
    np.testing.assert_allclose(found.kl, outcome_of(model, {"L1.mlp_out": value})["kl"], rtol=1e-4, atol=1e-7)


def test_in_a_parallel_layer_neither_attention_nor_mlp_hears_the_other() -> None:
    model = random_model(parallel=True)
    for sender, receiver in (("L1.H0", "L1.mlp_out"), ("L1.mlp_out", "L1.H0.q")):
        with pytest.raises(BindscopeError, match="must be computed after the sender"):
            patch_path(model, CONTRAST, sender, receiver)
    assert patch_path(model, CONTRAST, "L1.H0", "final").attrs["frozen"] == "L2.attn_out, L2.mlp_out"
    for measure in (
        lambda: attribute_residual(model, CONTRAST, site="resid_mid"),
        lambda: patch_sites(model, CONTRAST, ["L1.resid_mid"]),
    ):
        with pytest.raises(
            BindscopeError,
            match=r"work in parallel, so no stream lies between them; this model has .* attn_out, pre, post",
        ):
            measure()
    with pytest.raises(BindscopeError, match="are not gated"):
        patch_sites(model, CONTRAST, ["L1.pre_linear"])


@pytest.mark.parametrize(
    ("attribute", "site", "cell"),
    [
        (attribute_residual, "L1.resid_pre@6", dict(layer=1, position=6)),
        (attribute_heads, "L1.H1.result", dict(layer=1, head=1)),
        (attribute_mlps, "L0.mlp_out", dict(layer=0)),
    ],
)
@each_architecture
def test_an_attribution_is_the_slope_towards_the_source(attribute, site: str, cell: dict, changes: dict) -> None:  # type: ignore[no-untyped-def,type-arg]
    model, step = random_model(**changes), 1e-6
    found = attribute(model, CONTRAST).sel(cell)
    small = patch_sites(model, CONTRAST, [site], edit=lambda base, source: base + step * (source - base))
    np.testing.assert_allclose(found.logit_difference, small.logit_difference / step, rtol=1e-3, atol=1e-5)


@torch.no_grad()
@each_architecture
def test_a_cut_edge_is_a_key_that_one_head_does_not_see(changes: dict) -> None:  # type: ignore[type-arg]
    """Oracle: the pattern without that key, renormalised by hand; heads of the same group still see it."""
    model, n_rows = random_model(**changes), len(CONTRAST)
    edge = Edge(np.full(n_rows, 6), np.full(n_rows, 2), layer=1, head=1)
    edits = cut_edits(model, [edge], tuple(CONTRAST.base.shape))(slice(None))
    found = run(model, CONTRAST.base, ["L1.pattern"], edits)
    expected = run(model, CONTRAST.base, ["L1.pattern"])["L1.pattern"].clone()
    expected[:, 1, 6, 2] = 0
    expected[:, 1, 6] /= expected[:, 1, 6].sum(-1, keepdim=True)
    torch.testing.assert_close(found["L1.pattern"], expected)


@torch.no_grad()
@each_architecture
def test_the_terms_of_a_circuit_search_add_up_to_what_each_head_writes(changes: dict) -> None:  # type: ignore[type-arg]
    model, named = random_model(**changes), named_positions(PAIRS)
    search, query = _Search(model, CONTRAST, named, "success"), named["query"]
    for layer in range(model.config.n_layers):
        result = run(model, CONTRAST.base, [f"L{layer}.result"])[f"L{layer}.result"]
        written = search._terms(search.base, layer, "query").sum(1)  # [pair, head, d_model]
        torch.testing.assert_close(written, result[torch.arange(len(CONTRAST)), torch.from_numpy(query)])
