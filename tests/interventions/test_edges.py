"""Edges between parts: attribution held to node attribution, to completeness and to exact patches; circuits of edges to runs."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import xarray as xr
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from bindscope.errors import BindscopeError
from bindscope.interventions.attribution import attribute_heads, attribute_mlps
from bindscope.interventions.contrast import contrast_pairs
from bindscope.interventions.edge_circuit import (
    measure_faithfulness,
    prune_edges,
    run_edges,
    shuffle_senders,
    strongest_edges,
)
from bindscope.interventions.edge_report import CHOSEN, smallest_faithful
from bindscope.interventions.edges import ANYWHERE, Graph, attribute_edges, check_edges, choose_edges
from bindscope.interventions.outcome import measure_outcomes
from bindscope.interventions.paths import patch_path
from bindscope.model.config import ModelConfig
from bindscope.model.run import run
from bindscope.tasks.binding.structure import named_positions
from interventions.causal_cases import dereferencer, sample_pairs
from interventions.test_grids import configs, make_contrast, make_model


@torch.no_grad()
def ends_of(model, contrast):
    return [run(model, tokens).logits[:, contrast.at] for tokens in (contrast.base, contrast.source)]


@settings(max_examples=25)
@given(configs(), st.integers(0, 99))
def test_all_edges_are_the_base_run_and_none_the_source_run(config: ModelConfig, seed: int) -> None:
    model, contrast = make_model(config, seed), make_contrast(config, seed)
    every = Graph.of(model).edges
    base, source = ends_of(model, contrast)
    torch.testing.assert_close(run_edges(model, contrast, every), base)
    torch.testing.assert_close(run_edges(model, contrast, np.zeros_like(every)), source)


@settings(max_examples=25)
@given(configs(), st.integers(0, 99))
def test_without_one_edge_a_circuit_is_path_patching(config: ModelConfig, seed: int) -> None:
    model, contrast = make_model(config, seed), make_contrast(config, seed)
    graph = Graph.of(model)
    known = np.argwhere(graph.edges)
    sender, receiver = known[np.random.default_rng(seed).integers(len(known))]
    kept = graph.edges.copy()
    kept[sender, receiver] = False
    found = measure_outcomes(run_edges(model, contrast, kept), *ends_of(model, contrast), contrast)
    expected = patch_path(model, contrast, graph.senders[sender], graph.receivers[receiver])
    for name in ("logit_difference", "kl", "success"):
        np.testing.assert_allclose(found[name], expected[name].values, rtol=1e-5, atol=1e-7, err_msg=name)


@settings(max_examples=20)
@given(configs(), st.integers(0, 99))
def test_the_edges_of_a_sender_add_up_to_its_own_attribution(config: ModelConfig, seed: int) -> None:
    model, contrast = make_model(config, seed), make_contrast(config, seed)
    edges = attribute_edges(model, contrast, n_points=1).effect.sum("receiver")
    heads, mlps = attribute_heads(model, contrast), attribute_mlps(model, contrast)
    for layer in range(config.n_layers):
        for head in range(config.n_heads):
            np.testing.assert_allclose(
                edges.sel(sender=f"L{layer}.H{head}.result"),
                heads.logit_difference.sel(layer=layer, head=head),
                rtol=1e-4,
                atol=1e-6,
            )
        if layer in config.layers_with_mlp:
            np.testing.assert_allclose(
                edges.sel(sender=f"L{layer}.mlp_out"), mlps.logit_difference.sel(layer=layer), rtol=1e-4, atol=1e-6
            )


@settings(max_examples=8)
@given(configs(), st.integers(0, 99))
def test_integrated_gradients_of_the_embedding_account_for_the_whole_change(config: ModelConfig, seed: int) -> None:
    assume(config.activation != "relu" and config.norm != "none")  # kinks and sharp corners want many points
    model, contrast = make_model(config, seed), make_contrast(config, seed)
    whole = attribute_edges(model, contrast, n_points=200).effect.sel(sender="embed").sum("receiver")
    few = attribute_edges(model, contrast, n_points=2).effect.sel(sender="embed").sum("receiver")
    assert np.abs(whole - 1).mean() <= max(0.05, float(np.abs(few - 1).mean()))
    assert float(np.abs(whole - 1).median()) < 0.05


def test_effects_at_positions_are_parts_of_those_anywhere_and_missing_where_a_pair_has_none() -> None:
    pairs = sample_pairs(6)
    model, contrast = dereferencer(), contrast_pairs(pairs)
    named = named_positions(pairs)
    columns = {str(column): np.full(len(contrast), column) for column in range(contrast.base.shape[1])}
    every = attribute_edges(model, contrast, n_points=2, positions=columns).effect_at
    np.testing.assert_allclose(
        every.drop_sel(position=ANYWHERE).sum("position"), every.sel(position=ANYWHERE).fillna(0), atol=1e-4
    )
    at = attribute_edges(model, contrast, n_points=2, positions=named).effect_at
    assert list(at.position.values) == [ANYWHERE, *named]


def test_edges_go_forward_only() -> None:
    config = ModelConfig(9, 8, n_layers=2, n_heads=2, d_model=8, d_head=4, d_mlp=8)
    graph = Graph.of(make_model(config))
    names = [str(site) for site in graph.senders], [str(site) for site in graph.receivers]
    edge = lambda sender, receiver: graph.edges[names[0].index(sender), names[1].index(receiver)]  # noqa: E731
    assert edge("embed", "L0.H1.q")
    assert edge("L0.H0.result", "L0.mlp_out")
    assert not edge("L0.mlp_out", "L0.H0.k")
    assert not edge("L0.mlp_out", "L0.mlp_out")
    assert edge("L0.mlp_out", "L1.H0.k")
    assert graph.edges[:, names[1].index("final")].all()


def test_the_constructed_model_is_kept_by_its_edges_and_not_by_random_ones() -> None:
    pairs = sample_pairs(24)
    model, contrast = dereferencer(), contrast_pairs(pairs)
    means = attribute_edges(model, contrast, n_points=8).effect.mean("pair").values
    sizes = (1, int(np.isfinite(means).sum()))
    found = measure_faithfulness(model, contrast, means, sizes=sizes, n_random=3, rng=np.random.default_rng(0))
    assert float(found.faithfulness.sel(size=sizes[1], circuit="attributed").mean()) == pytest.approx(1, abs=1e-4)
    half = sizes[1] // 2
    found = measure_faithfulness(model, contrast, means, sizes=(half,), n_random=3, rng=np.random.default_rng(0))
    kept = found.kept.sel(size=half).mean("pair")
    assert float(kept.sel(circuit="attributed")) > float(kept.drop_sel(circuit="attributed").max())


def test_exact_patches_tell_how_far_attribution_is_off() -> None:
    pairs = sample_pairs(8)
    model, contrast = dereferencer(), contrast_pairs(pairs)
    guess = attribute_edges(model, contrast, n_points=4)
    checked = check_edges(model, contrast, guess, n_strongest=4, n_random=4, rng=np.random.default_rng(0))
    for (sender, receiver), exact in zip(checked.edges, checked.exact):
        assert exact == pytest.approx(float(patch_path(model, contrast, sender, receiver).logit_difference.mean()))
    errors = np.abs(np.array(checked.attributed) - np.array(checked.exact))
    assert (checked.mean_absolute_error, checked.largest_error) == pytest.approx((errors.mean(), errors.max()))


def test_strongest_edges_come_first_and_others_are_drawn_among_the_rest() -> None:
    means = np.array([[np.nan, 3.0, -4.0], [1.0, np.nan, 0.5]])
    chosen = choose_edges(means, 2, 10, np.random.default_rng(0))
    assert chosen[:2] == [(0, 2), (0, 1)]
    assert sorted(chosen[2:]) == [(1, 0), (1, 2)]
    assert strongest_edges(means, 2).sum() == 2
    assert strongest_edges(means, 99).sum() == 4


def test_a_shuffled_circuit_has_as_many_edges_into_each_receiver() -> None:
    config = ModelConfig(9, 8, n_layers=3, n_heads=2, d_model=8, d_head=4, d_mlp=8)
    graph, rng = Graph.of(make_model(config)), np.random.default_rng(0)
    marks = graph.edges & (rng.random(graph.edges.shape) < 0.3)
    shuffled = shuffle_senders(marks, graph.edges, rng)
    assert (shuffled.sum(0) == marks.sum(0)).all()
    assert not (shuffled & ~graph.edges).any()


def test_pruning_leaves_only_ways_from_the_embedding_to_the_logits() -> None:
    config = ModelConfig(9, 8, n_layers=2, n_heads=1, d_model=8, d_head=4, d_mlp=8)
    graph = Graph.of(make_model(config))
    senders, receivers = [str(site) for site in graph.senders], [str(site) for site in graph.receivers]
    marks = np.zeros_like(graph.edges)
    for sender, receiver in [
        ("embed", "L0.H0.v"), ("L0.H0.result", "final"), ("L0.mlp_out", "L1.H0.q"), ("embed", "L1.mlp_out"),
    ]:  # fmt: skip
        marks[senders.index(sender), receivers.index(receiver)] = True
    kept = prune_edges(marks, graph)
    assert {(senders[s], receivers[r]) for s, r in np.argwhere(kept)} == {
        ("embed", "L0.H0.v"),
        ("L0.H0.result", "final"),
    }


def test_what_does_not_fit_is_refused() -> None:
    config = ModelConfig(9, 8, n_layers=1, n_heads=1, d_model=8, d_head=4, d_mlp=8)
    model, contrast = make_model(config), make_contrast(config)
    with pytest.raises(BindscopeError, match="kept"):
        run_edges(model, contrast, np.zeros((2, 2), bool))
    with pytest.raises(BindscopeError, match="n_points"):
        attribute_edges(model, contrast, n_points=0)


@pytest.mark.parametrize(
    ("low", "smallest"),
    [
        ([0.8, 0.9, 1.0], 10),  # every size is faithful, the first by exactly what is asked for
        ([0.9, 0.7, 0.8, 1.0], 40),  # a larger one that is not counts
        ([np.nan, 0.9], 20),  # a size that was not tried is not faithful
        ([0.9, 0.1], None),
    ],
)
def test_the_smallest_faithful_circuit_has_none_behind_it_that_is_not(low: list[float], smallest: int | None) -> None:
    sizes = [10 * 2**index for index in range(len(low))]
    report = xr.Dataset(
        {"faithfulness_low": (("circuit", "index"), [low]), "size": ("index", sizes)}, {"circuit": [CHOSEN]}
    )
    assert smallest_faithful(report) == smallest
