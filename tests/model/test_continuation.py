"""Runs that go on from kept ones against whole runs with the same change, and their gradients."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bindscope.errors import BindscopeError
from bindscope.model import continuation
from bindscope.model.config import ModelConfig
from bindscope.model.continuation import calls_worth, group_rows, keep_runs, kept_bytes
from bindscope.model.run import run
from bindscope.model.sites import Site
from interventions.test_grids import N_POSITIONS, configs, make_model

AT = N_POSITIONS - 2
COLUMNS = torch.tensor([[3, -1], [2, 5], [-1, -1], [0, AT], [AT + 1, -1], [3, 4], [AT, -1]])  # [row, column]
ROWS = torch.tensor([0, 3, 1, 1, 2, 0, 3])  # of four runs, some twice


def whole_run(model, tokens, layer, changed):
    """Logits [row, output] by one run of the whole model, changed at ``COLUMNS`` of the rows."""
    row, index = (COLUMNS >= 0).nonzero(as_tuple=True)
    last = model.config.n_layers
    site = Site("resid_pre", layer) if layer < last else Site("resid_post", last - 1)

    def edit(stream):
        return stream.index_put((row, COLUMNS[row, index]), changed[row, index])

    return run(model, tokens[ROWS], write={site: edit}, at=torch.tensor([AT])).logits[:, 0]


def make_case(config: ModelConfig, seed: int):
    generator = torch.Generator().manual_seed(seed)
    tokens = torch.randint(0, config.d_vocab, (4, N_POSITIONS), generator=generator)
    shape = (*COLUMNS.shape, config.d_model)
    return make_model(config, seed), tokens, torch.randn(shape, generator=generator, dtype=torch.double)


@settings(max_examples=40)
@given(configs(), st.integers(0, 99), st.sampled_from([0, 10**9]))
def test_going_on_from_kept_runs_equals_running_the_whole_model(config: ModelConfig, seed: int, worth: int) -> None:
    model, tokens, changed = make_case(config, seed)
    with pytest.MonkeyPatch.context() as patch, torch.no_grad():
        patch.setattr(continuation, "calls_worth", lambda _: worth)  # each first column alone, or all together
        for layer in range(config.n_layers + 1):
            kept = keep_runs(model, tokens, AT, lowest=layer)
            expected = whole_run(model, tokens, layer, changed)
            torch.testing.assert_close(kept.run_changed(layer, ROWS, COLUMNS, changed), expected)


@settings(max_examples=25)
@given(configs(), st.integers(0, 99))
def test_gradients_reach_the_changed_streams_as_through_the_whole_model(config: ModelConfig, seed: int) -> None:
    model, tokens, changed = make_case(config, seed)
    weights = torch.randn(len(ROWS), config.outputs, dtype=torch.double)
    kept = keep_runs(model.requires_grad_(False), tokens, AT)
    for layer in range(config.n_layers + 1):
        gradients = []
        for logits in (
            lambda x, layer=layer: kept.run_changed(layer, ROWS, COLUMNS, x),
            lambda x, layer=layer: whole_run(model, tokens, layer, x),
        ):
            x = changed.clone().requires_grad_()
            (logits(x) * weights).sum().backward()
            gradients.append(x.grad)
        torch.testing.assert_close(*gradients)


@settings(max_examples=20)
@given(configs(), st.integers(0, 99))
def test_what_is_read_is_what_the_run_has_and_putting_it_back_changes_nothing(config: ModelConfig, seed: int) -> None:
    model, tokens, _ = make_case(config, seed)
    columns = COLUMNS.masked_fill(COLUMNS > AT, -1)
    kept = keep_runs(model, tokens, AT)
    with torch.no_grad():
        answers = run(model, tokens, at=torch.tensor([AT])).logits[ROWS, 0]
        for layer in range(config.n_layers):
            site = Site("resid_pre", layer)
            stream = run(model, tokens, read=[site])[site][ROWS[:, None], columns.clamp(min=0)]
            found = kept.read(layer, ROWS, columns)
            torch.testing.assert_close(found, stream * (columns >= 0)[:, :, None])
            torch.testing.assert_close(kept.run_changed(layer, ROWS, columns, found), answers)


@given(st.lists(st.integers(0, 8), min_size=1, max_size=12), st.integers(0, 30))
def test_rows_are_grouped_so_that_the_fewest_tokens_are_computed(first: list[int], worth: int) -> None:
    groups = group_rows(torch.tensor(first), n_positions=8, worth=worth)
    changing = sorted(row for row, column in enumerate(first) if column < 8)
    assert sorted(int(row) for _, rows in groups for row in rows) == changing
    assert all(min(first[row] for row in rows) == start for start, rows in groups)
    assert all(one < other for (one, _), (other, _) in pairwise(groups))
    cost = sum(len(rows) * (8 - start) + worth for start, rows in groups)
    values = sorted({first[row] for row in changing})
    assert cost == least_cost(values, [first[row] for row in changing], worth)


def least_cost(values: list[int], first: list[int], worth: int) -> int:
    """By trying every way to cut the sorted first columns into groups."""
    if not values:
        return 0
    costs = []
    for n in range(1, len(values) + 1):
        here = sum(column in values[:n] for column in first) * (8 - values[0]) + worth
        costs.append(here + least_cost(values[n:], first, worth))
    return min(costs)


def test_the_runs_take_as_much_memory_as_is_said() -> None:
    config = ModelConfig(d_vocab=9, n_positions=8, n_layers=3, n_heads=2, d_model=16, d_head=4, identity_qk=True)
    model = make_model(config)
    kept = keep_runs(model, torch.zeros(5, 8, dtype=torch.long), at=7, lowest=1)
    parts = [part for past in kept.pasts for part in (past.keys, past.values, past.normed)]
    assert sum(part.nbytes for part in [*kept.streams, *parts] if part is not None) == 5 * kept_bytes(model, 8, 1)


def test_layers_and_columns_that_were_not_kept_are_refused() -> None:
    model = make_model(ModelConfig(d_vocab=9, n_positions=8, n_layers=3, n_heads=2, d_model=16, d_head=4))
    tokens, rows, columns = torch.zeros(2, 8, dtype=torch.long), torch.arange(2), torch.tensor([[1], [2]])
    with pytest.raises(BindscopeError, match="column 8"):
        keep_runs(model, tokens, at=8)
    with pytest.raises(BindscopeError, match="from layer 2 on"):
        keep_runs(model, tokens, at=7, lowest=2).read(1, rows, columns)


def test_a_larger_model_makes_more_groups() -> None:
    small, large = (
        ModelConfig(d_vocab=9, n_positions=8, n_layers=1, n_heads=1, d_model=d, d_head=d) for d in (16, 256)
    )
    assert calls_worth(large) < calls_worth(small)
