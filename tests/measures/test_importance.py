"""Importance of attributes for outcomes that we made depend on them, and on nothing."""

from __future__ import annotations

import numpy as np
import pytest

from bindscope.errors import BindscopeError
from bindscope.measures.binding.importance import area_under_curve, explain_behaviour, explain_target
from bindscope.measures.binding.predictions import predict_answers
from bindscope.measures.stats.boosting import BoostingConfig, fit_trees, predict_fractions
from bindscope.tasks.binding import BindingTask
from measures.answering import Answering, say_line_1, solve

QUICK = BoostingConfig(n_trees=40, rate=0.3)


def attributes(n: int = 600, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {
        "a": rng.integers(1, 5, n),
        "b": rng.integers(0, 2, n),
        "noise": rng.integers(0, 8, n),
        "same": np.full(n, 3),
    }


def explain(outcome, given=None, seed: int = 1):
    return explain_target(given or attributes(), outcome, np.random.default_rng(seed), QUICK)


def test_what_two_attributes_decide_together_is_found_though_neither_knows_it_alone():
    given = attributes()
    either = (given["a"] > 2) ^ (given["b"] > 0)
    found = explain(either)
    together, noise = found.importance.sel(attribute=["a", "b"]), found.sel(attribute="noise")
    assert (together > 0.3).all()
    assert abs(float(noise.importance)) < 0.02
    assert (found.alone < 0.02).all()
    assert float(found.explained) > 0.9
    assert float(found.auc) > 0.99


def test_what_one_attribute_decides_is_its_own():
    given = attributes()
    noisy = np.where(np.random.default_rng(5).random(600) < 0.9, given["a"] > 2, given["a"] <= 2)
    found = explain(noisy)
    assert str(found.attribute.values[found.importance.values.argmax()]) == "a"
    assert float(found.importance_low.sel(attribute="a")) > 0.1
    entropy = -0.9 * np.log(0.9) - 0.1 * np.log(0.1)
    assert float(found.alone.sel(attribute="a")) == pytest.approx(np.log(2) - entropy, abs=0.06)
    assert float(found.log_loss) == pytest.approx(entropy, abs=0.06)


def test_chance_explains_nothing_and_so_do_shuffled_outcomes():
    given = attributes()
    found = explain(np.random.default_rng(9).random(600) < 0.3)
    assert float(found.log_loss) > float(found.base_log_loss) - 0.01
    assert (found.importance_low < 0.01).all()
    assert abs(float(found.auc) - 0.5) < 0.1
    decided = explain(given["a"] > 2)
    assert float(decided.log_loss) < 0.1 < 0.65 < float(decided.shuffled_log_loss)
    assert abs(float(decided.shuffled_auc) - 0.5) < 0.1


def test_attributes_that_never_vary_are_left_out_and_named():
    found = explain(attributes()["b"] > 0)
    assert "same" not in found.attribute.values
    assert found.attrs["left_out"] == "same"


@pytest.mark.parametrize(
    ("outcome", "note"),
    [
        (np.ones(600, bool), "the outcome is yes in all 600 examples"),
        (np.zeros(600, bool), "the outcome is no in all 600 examples"),
        (np.arange(600) < 5, "only 5 of 600 examples differ"),
    ],
)
def test_where_nothing_varies_nothing_is_explained(outcome, note):
    found = explain(outcome)
    assert note in found.attrs["note"]
    assert np.isnan(found.importance).all()
    assert np.isnan([float(found[name]) for name in ("log_loss", "auc", "explained", "shuffled_auc")]).all()
    assert float(found.fraction) == outcome.mean()


def test_the_same_seed_explains_the_same():
    outcome = attributes()["a"] > 2
    assert explain(outcome).identical(explain(outcome))
    assert not explain(outcome).identical(explain(outcome, seed=2))


def test_the_mistakes_of_a_heuristic_are_explained_by_it():
    batch = BindingTask(lines=6, max_depth=2).sample_evaluation(np.random.default_rng(0), 500)["test"]
    heuristic, solver = (predict_answers(Answering(answer), batch) for answer in (say_line_1, solve))
    rng = np.random.default_rng(0)
    found = explain_behaviour(heuristic, "right", rng, QUICK)
    assert str(found.attribute.values[found.importance.values.argmax()]) == "line_1_right"
    assert float(found.explained) > 0.95
    assert "all 500" in explain_behaviour(solver, "right", rng, QUICK).attrs["note"]
    assert "all 500" in explain_behaviour(heuristic, "line_1", rng, QUICK).attrs["note"]
    with pytest.raises(BindscopeError, match="one of right, line_1"):
        explain_behaviour(heuristic, "wrong", rng)  # type: ignore[arg-type]


def test_the_area_under_the_curve_counts_pairs():
    rng = np.random.default_rng(3)
    outcome, score = rng.random(40) < 0.4, rng.integers(0, 6, 40) / 6
    pairs = [(y > n) + (y == n) / 2 for y in score[outcome] for n in score[~outcome]]
    assert area_under_curve(outcome, score) == pytest.approx(np.mean(pairs))


def test_trees_draw_even_groups_apart_and_leave_what_they_cannot_know():
    x = np.repeat([[0, 0], [0, 1], [1, 0], [1, 1]], 50, axis=0)
    y = np.tile(np.arange(50) < 40, 4) & (x[:, 0] > 0)  # never where the first is 0, four in five where it is 1
    fractions = predict_fractions(
        fit_trees(x, y, BoostingConfig(n_trees=200, rate=0.3, penalty=1e-6, least_weight=0)), x
    )
    np.testing.assert_allclose(fractions[x[:, 0] > 0], 0.8, atol=1e-3)
    assert fractions[x[:, 0] == 0].max() < 0.01
    constant = predict_fractions(fit_trees(np.zeros((9, 1), int), np.arange(9) < 3), np.zeros((2, 1), int))
    np.testing.assert_allclose(constant, 1 / 3)
    with pytest.raises(BindscopeError, match="out of range"):
        BoostingConfig(rate=0)
