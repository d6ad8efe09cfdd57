"""Simpler networks against plain formulas, and what they cannot know of symbols that training never shows."""

from __future__ import annotations

from typing import get_args, get_type_hints

import pytest
import torch

from bindscope.model.baselines import build_baseline
from bindscope.model.config import BaselineConfig, ModelConfig

KINDS = get_args(get_type_hints(BaselineConfig)["kind"])
SHAPE = ModelConfig(d_vocab=7, n_positions=3, d_out=2, d_model=5)
TOKENS = torch.tensor([[0, 3, 6], [2, 2, 6], [5, 1, 6], [4, 0, 6]])


def build(kind: str, seed: int = 0, **settings: int) -> torch.nn.Module:
    settings = {"d_hidden": 11, **settings}
    return build_baseline(BaselineConfig(kind, **settings), SHAPE, torch.Generator().manual_seed(seed))


def linear(network: torch.nn.Module, name: str, x: torch.Tensor) -> torch.Tensor:
    weights = network.state_dict()
    return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_layers", [1, 3])
def test_each_answers_once_for_every_sequence_and_column(kind, n_layers):
    network = build(kind, n_layers=n_layers)
    assert network(TOKENS).shape == (4, 1, 2)
    asked = network(TOKENS, at=torch.tensor([2, 2]))
    assert torch.equal(asked, network(TOKENS).expand(-1, 2, -1))


@pytest.mark.parametrize("kind", KINDS)
def test_the_weights_follow_from_the_generator_alone(kind):
    torch.manual_seed(1)
    first = build(kind).state_dict()
    torch.manual_seed(2)
    again, other = build(kind).state_dict(), build(kind, seed=1).state_dict()
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not any(torch.equal(first[name], other[name]) for name in first if name.endswith("weight"))


def test_an_mlp_on_one_hot_tokens_is_matrices_on_one_hot_tokens():
    network = build("one-hot-mlp")
    one_hot = torch.nn.functional.one_hot(TOKENS, 7).float().flatten(1)  # [batch, position · token]
    hidden = torch.relu(one_hot @ network.table.weight + network.bias)
    hidden = torch.relu(linear(network, "rest.0", hidden))
    torch.testing.assert_close(network(TOKENS)[:, 0], linear(network, "rest.2", hidden))


def test_an_mlp_with_xxt_is_given_every_inner_product():
    network = build("relation-mlp")
    rows = []
    for tokens in TOKENS:
        x = [network.embed.weight[token] for token in tokens]
        rows.append(torch.cat([*x, torch.stack([one @ other for one in x for other in x])]))
    hidden = torch.relu(linear(network, "layers.0", torch.stack(rows)))
    hidden = torch.relu(linear(network, "layers.2", hidden))
    torch.testing.assert_close(network(TOKENS)[:, 0], linear(network, "layers.4", hidden))


def test_an_mlp_on_embeddings_has_no_inner_products():
    network = build("embedding-mlp", n_layers=1)
    hidden = torch.relu(linear(network, "layers.0", network.embed.weight[TOKENS].flatten(1)))
    torch.testing.assert_close(network(TOKENS)[:, 0], linear(network, "layers.2", hidden))


def test_a_recurrent_network_reads_from_left_to_right_and_answers_at_the_end():
    network = build("rnn", n_layers=1)
    weights, state = network.recurrent.state_dict(), torch.zeros(4, 11)
    for index in range(3):
        x = network.embed.weight[TOKENS[:, index]]
        state = torch.tanh(
            x @ weights["weight_ih_l0"].T
            + weights["bias_ih_l0"]
            + state @ weights["weight_hh_l0"].T
            + weights["bias_hh_l0"]
        )
    torch.testing.assert_close(network(TOKENS)[:, 0], linear(network, "out", state))
    assert isinstance(build("lstm").recurrent, torch.nn.LSTM)


def test_to_an_mlp_on_one_hot_tokens_equal_symbols_are_different_ones_under_other_names():
    """Renaming the symbols of one position gives a network that is as likely at the start: αα in one is αβ in the other.

    Training on other symbols moves none of these rows, so that nothing tells the two apart afterwards.
    """
    network, renamed = build("one-hot-mlp"), build("one-hot-mlp")
    order = torch.tensor([1, 2, 3, 4, 5, 0, 6])  # another name for every symbol in the second position
    with torch.no_grad():
        renamed.table.weight[7:14] = network.table.weight[7:14][order]
    equal = torch.stack([torch.arange(6), torch.arange(6), torch.full((6,), 6)], 1)
    different = equal.clone()
    different[:, 1] = order[equal[:, 1]]
    torch.testing.assert_close(renamed(equal), network(different))
    loss = network(TOKENS[1:2]).square().sum()  # a string of symbol 2 alone
    loss.backward()
    moved = {int(row) for row in network.table.weight.grad.abs().sum(1).nonzero()}
    assert moved == {2, 7 + 2, 14 + 6}


def test_an_mlp_with_shared_embeddings_sees_a_symbol_alike_in_both_positions():
    network = build("relation-mlp")
    x = network.embed.weight[TOKENS]
    relation = x @ x.transpose(1, 2)
    assert relation[1, 0, 1] == relation[1, 0, 0]  # the string of one symbol twice
    assert relation[0, 0, 1] != relation[0, 0, 0]
