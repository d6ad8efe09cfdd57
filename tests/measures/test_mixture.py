"""The mixture of mechanisms: known weights are found again, written models give their own account, untrained ones none."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bindscope.interventions.contrast import contrast_pairs
from bindscope.interventions.patching import patch_logits
from bindscope.measures.binding.mixture.fit import fit_mixture, jensen_shannon, maximise, sum_accounts
from bindscope.measures.binding.mixture.likelihood import (
    ACCOUNT_OF,
    ACCOUNTS,
    COMPONENTS,
    tabulate_components,
    to_outcomes,
)
from bindscope.measures.binding.mixture.measure import measure_mixture, patch_ends
from bindscope.measures.binding.mixture.reading import COLON, END, POSITIONS, pointer_layer
from bindscope.model.config import ModelConfig
from bindscope.model.transformer import Transformer
from bindscope.tasks.binding import BindingTask, to_digits
from bindscope.tasks.binding.accounts import sample_account_pairs
from bindscope.theory.constructed import construct_dereferencer
from measures.constructed_pointers import chase_pointers, meet_in_the_middle

TASK = BindingTask(lines=12, max_depth=3)


@pytest.fixture(scope="module")
def pairs():
    return sample_account_pairs(TASK, np.random.default_rng(0), 300)


@pytest.fixture(scope="module")
def few():
    return sample_account_pairs(TASK, np.random.default_rng(0), 40)


@pytest.fixture(scope="module")
def components(pairs):
    return tabulate_components(pairs)


def draw_outcomes(components, weights: np.ndarray, sigma: float, rng: np.random.Generator) -> np.ndarray:
    """Answers [pair] drawn from a mixture of known weights [component]."""
    mass = components.at(sigma) @ weights  # [pair, outcome]
    assert np.allclose(mass.sum(1), 1)
    return (mass.cumsum(1) > rng.random((len(mass), 1))).argmax(1)


def test_every_component_is_a_distribution_over_answers(components) -> None:
    for sigma in (0.25, 1.0, 3.0):
        np.testing.assert_allclose(components.at(sigma).sum(1), 1)


@settings(max_examples=8, deadline=None)
@given(
    parts=st.lists(st.integers(0, 6), min_size=6, max_size=6).filter(any),
    sigma=st.sampled_from([0.25, 1.0]),
    seed=st.integers(0, 1000),
)
def test_weights_that_answers_were_drawn_with_are_found_again(parts: list[int], sigma: float, seed: int) -> None:
    drawn = sample_account_pairs(TASK, np.random.default_rng(7), 1200)
    components, wanted = tabulate_components(drawn), np.array(parts) / sum(parts)
    of_component = wanted[ACCOUNT_OF] / np.bincount(ACCOUNT_OF)[ACCOUNT_OF]
    outcomes = draw_outcomes(components, of_component, sigma, np.random.default_rng(seed))
    weights, _ = maximise(components, outcomes, np.ones((1, len(drawn))))
    np.testing.assert_allclose(sum_accounts(weights)[0], wanted, atol=0.12)


def test_intervals_hold_the_weights_about_as_often_as_they_say(components) -> None:
    wanted = np.array([0.3, 0.3, 0.1, 0.1, 0.1, 0.05, 0.05, 0.0])
    by_account, held = sum_accounts(wanted), []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        fit = fit_mixture(components, draw_outcomes(components, wanted, 0.5, rng), rng)
        assert fit.weights.sum() == pytest.approx(1)
        held.append((fit.low - 1e-9 <= by_account) & (by_account <= fit.high + 1e-9))
    assert np.mean(held) > 0.85  # of 95 %, over 12 draws and six accounts


def test_a_positional_part_is_hardly_ever_found_where_there_is_none(components) -> None:
    weights, found = np.array([0.0, 0.0, 0.0, 0.2, 0.1, 0.0, 0.7, 0.0]), []
    for seed in range(12):
        outcomes = draw_outcomes(components, weights, 1.0, np.random.default_rng(seed))
        found.append(sum_accounts(maximise(components, outcomes, np.ones((1, len(outcomes))))[0])[0, 0])
    assert np.median(found) < 0.06


def test_a_fit_without_an_account_that_is_there_is_farther_from_new_answers(components) -> None:
    rng = np.random.default_rng(0)
    weights = np.array([0.4, 0.4, 0.0, 0.1, 0.1, 0.0, 0.0, 0.0])
    fit = fit_mixture(components, draw_outcomes(components, weights, 0.5, rng), rng)
    left_out = dict(zip(ACCOUNTS, fit.without))
    assert fit.distance < fit.floor + 0.05
    assert min(left_out["positional"], left_out["lexical"], left_out["early"]) > fit.distance + 0.05
    assert left_out["reflexive"] == pytest.approx(fit.distance, abs=0.02)


def weights_at(dataset, position: str) -> list[str]:
    """The account with all the weight at each layer."""
    weight = dataset.weight.sel(position=position)
    assert (weight.max("account") > 0.99).all()
    return [ACCOUNTS[int(index)] for index in weight.argmax("account")]


def test_the_dereferencer_hands_the_query_on_as_a_name_and_then_as_its_value(few) -> None:
    dataset = measure_mixture(construct_dereferencer(12, 3), few)
    assert weights_at(dataset, END) == ["lexical"] * 2 + ["reflexive"] * 4  # layer 1 looks a direct binding up
    assert weights_at(dataset, COLON) == ["unchanged"] * 5 + ["reflexive"]  # the last layer reads the query
    assert pointer_layer(dataset) == 1
    assert float(dataset.accuracy) == 1


def test_a_colon_that_reads_the_name_first_is_lexical_until_it_has_looked_it_up(few) -> None:
    assert weights_at(measure_mixture(chase_pointers(12, 3), few), COLON) == [
        "unchanged", "lexical", "reflexive", "reflexive", "reflexive",
    ]  # fmt: skip
    assert weights_at(measure_mixture(meet_in_the_middle(12, 3), few), COLON) == ["unchanged"] + ["lexical"] * 3 + [
        "reflexive"
    ]


def test_at_depth_2_the_dereferencer_has_the_value_one_layer_later() -> None:
    deeper = sample_account_pairs(TASK, np.random.default_rng(1), 24, depth=2)
    assert (
        weights_at(measure_mixture(construct_dereferencer(12, 3), deeper), END) == ["lexical"] * 3 + ["reflexive"] * 3
    )


def test_an_untrained_model_follows_no_account(pairs) -> None:
    config = ModelConfig(d_vocab=40, n_positions=51, n_layers=2, n_heads=2, d_model=16, d_mlp=16)
    model = Transformer(config, torch.Generator().manual_seed(0)).eval()
    weight = measure_mixture(model, pairs).weight
    assert (weight.sel(account="other") > 0.8).all()
    assert (weight.sel(account=["lexical", "reflexive"]) < 0.1).all()


def test_patched_ends_equal_running_the_model_again(few) -> None:
    model, contrast = construct_dereferencer(12, 3), contrast_pairs(few.pairs)
    answers = patch_ends(model, few)
    first = few.pairs.query_position - 1
    columns = {"query": [first + 1], "colon": [first + 2], "end": [first, first + 1, first + 2]}
    for name, at in columns.items():
        marks = np.tile(np.isin(np.arange(first + 3), at), (len(few), 1))
        for layer in (0, 2, 4):
            again = patch_logits(model, contrast, [f"L{layer}.resid_pre"], positions=marks).patched.argmax(-1)
            np.testing.assert_array_equal(
                answers[POSITIONS.index(name), layer], to_digits(few.pairs.base, again.numpy())
            )


def test_the_jensen_shannon_distance_is_a_distance() -> None:
    rng = np.random.default_rng(0)
    a, b, c = rng.dirichlet(np.ones(5), 3)
    assert jensen_shannon(a, a) == 0
    assert jensen_shannon(a, b) == pytest.approx(jensen_shannon(b, a))
    assert jensen_shannon(a, c) <= jensen_shannon(a, b) + jensen_shannon(b, c)
    assert jensen_shannon(np.array([1.0, 0.0]), np.array([0.0, 1.0])) == 1


def test_outputs_that_are_no_digit_count_as_other(components, pairs) -> None:
    fit = fit_mixture(components, to_outcomes(np.full(len(pairs), -1), 10), np.random.default_rng(0))
    assert fit.weights[ACCOUNTS.index("other")] == pytest.approx(1)
    assert len(COMPONENTS) == len(ACCOUNT_OF)


def test_the_distance_of_distributions_that_differ_by_less_than_a_float_can_halve_is_a_number() -> None:
    least = np.nextafter(0, 1)
    assert jensen_shannon(np.array([1.0, least]), np.array([1.0, 0.0])) == 0.0
