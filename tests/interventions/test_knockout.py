from __future__ import annotations

import numpy as np
import pytest
import torch

from bindscope.errors import BindscopeError
from bindscope.interventions.answers import accuracy_by
from bindscope.interventions.knockout import Edge, knock_out_each, knock_out_edges, knock_out_grid, name_edge
from bindscope.model.run import run
from bindscope.tasks.binding.structure import named_positions
from interventions.causal_cases import dereferencer, identity_model, random_model, sample_pairs

PAIRS = sample_pairs(6)
POSITIONS = named_positions(PAIRS)


@pytest.mark.parametrize(("layer", "head"), [(1, 0), (1, None), (None, None)])
def test_cutting_an_edge_is_dropping_it_from_the_pattern_and_renormalising(layer: int | None, head: int | None) -> None:
    """Oracle: the pattern with the cell at 0, each row divided by its sum, in row-by-row runs."""
    model = identity_model()
    dataset = knock_out_edges(model, PAIRS.base, [name_edge("colon>rhs 1", POSITIONS, layer, head)])
    heads = range(2) if head is None else [head]

    def renormalise(row: int):  # type: ignore[no-untyped-def]
        def edit(pattern: torch.Tensor) -> torch.Tensor:
            cut = pattern.clone()
            for chosen in heads:
                cut[0, chosen, POSITIONS["colon"][row], POSITIONS["rhs 1"][row]] = 0
            return cut / cut.sum(-1, keepdim=True)

        return edit

    layers = range(3) if layer is None else [layer]
    for row in range(len(PAIRS)):
        with torch.no_grad():
            write = {f"L{number}.pattern": renormalise(row) for number in layers}
            logits = run(model, torch.from_numpy(PAIRS.base_tokens[row : row + 1]), write=write).logits[0, -1]
        expected = logits.log_softmax(-1)[PAIRS.base_answers[row]]
        assert dataset.log_probability[row] == pytest.approx(float(expected), abs=1e-5)


def test_edges_of_different_layers_are_cut_each_in_its_own() -> None:
    model, (colon, query, root) = random_model(), (POSITIONS[name] for name in ("colon", "query", "rhs 1"))
    edges = [name_edge("colon>query", POSITIONS, 0), name_edge("colon>rhs 1", POSITIONS, 1, 1)]
    rows = torch.arange(6)

    def hide_query(scores: torch.Tensor) -> torch.Tensor:
        return scores.index_put(
            (rows[:, None], torch.arange(2), torch.tensor(colon)[:, None], torch.tensor(query)[:, None]),
            torch.tensor(-1e9).double(),
        )

    def hide_root(scores: torch.Tensor) -> torch.Tensor:
        return scores.index_put(
            (rows, torch.tensor(1), torch.tensor(colon), torch.tensor(root)), torch.tensor(-1e9).double()
        )

    with torch.no_grad():
        write = {"L0.scores": hide_query, "L1.scores": hide_root}
        logits = run(model, torch.from_numpy(PAIRS.base_tokens), write=write).logits[:, -1].log_softmax(-1)
    expected = logits[rows, torch.from_numpy(PAIRS.base_answers)]
    np.testing.assert_allclose(knock_out_edges(model, PAIRS.base, edges).log_probability, expected, atol=1e-5)


def test_a_cut_in_every_head_alone_equals_the_same_cut_by_name() -> None:
    model, edge = random_model(), name_edge("query>rhs 1", POSITIONS)
    grid = knock_out_grid(model, PAIRS.base, edge)
    for layer, head in ((0, 1), (2, 0)):
        alone = knock_out_edges(model, PAIRS.base, [name_edge("query>rhs 1", POSITIONS, layer, head)])
        assert grid.log_probability.sel(layer=layer, head=head, drop=True).equals(alone.log_probability)
    each = knock_out_each(model, PAIRS.base, [edge, name_edge("colon>query", POSITIONS)])
    whole = knock_out_edges(model, PAIRS.base, [edge])
    assert each.log_probability.sel(edge="query>rhs 1", drop=True).equals(whole.log_probability)


def test_the_dereferencer_loses_the_answer_with_the_edges_of_its_circuit_only() -> None:
    model, pairs = dereferencer(), sample_pairs(40)
    positions = named_positions(pairs)
    cut = ["rhs 1>lhs 1", "query>rhs 1", "rhs 2>rhs 1", "query>distractor", "colon>rhs 1"]
    accuracy = accuracy_by(knock_out_each(model, pairs.base, [name_edge(name, positions) for name in cut]), "depth")
    at = accuracy.accuracy.sel
    assert (at(edge="rhs 1>lhs 1") < 0.5).all()
    assert at(edge="query>rhs 1", depth=1) < 0.5
    assert at(edge="query>rhs 1", depth=2) == 1
    assert (at(edge="rhs 2>rhs 1", depth=[2, 3]) < 0.5).all()
    assert (at(edge=["query>distractor", "colon>rhs 1"]) == 1).all()


def test_examples_without_the_edge_are_missing() -> None:
    pairs = sample_pairs(30)
    dataset = knock_out_edges(dereferencer(), pairs.base, [name_edge("rhs 2>rhs 1", named_positions(pairs))])
    shallow = dataset.depth == 1
    assert dataset.correct[shallow].isnull().all()
    assert dataset.correct[~shallow].notnull().all()
    assert accuracy_by(dataset, "depth").n.sel(depth=1) == 0


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("colon", "as in 'colon>query'"),
        ("colon>qury", "Did you mean 'query'?"),
        ("rhs 1>colon", "stands before the second"),
    ],
)
def test_edges_that_make_no_sense_are_refused(text: str, sentence: str) -> None:
    with pytest.raises(BindscopeError, match=sentence):
        knock_out_edges(random_model(), PAIRS.base, [name_edge(text, POSITIONS)])


def test_a_position_must_keep_something_to_attend_to() -> None:
    first = Edge(np.zeros(6, int), np.zeros(6, int))
    with pytest.raises(BindscopeError, match="nothing left to attend to"):
        knock_out_edges(random_model(), PAIRS.base, [first])
    with pytest.raises(BindscopeError, match="layers 0 to 2"):
        knock_out_edges(random_model(), PAIRS.base, [name_edge("colon>query", POSITIONS, layer=7)])
    with pytest.raises(BindscopeError, match="no program here has both"):
        knock_out_edges(random_model(), PAIRS.base, [Edge(POSITIONS["colon"], np.full(6, -1))])
