"""Two causal models and a transformer whose circuit is known: the true one scores 1, its rival does not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import xarray as xr

from bindscope.errors import BindscopeError
from bindscope.interventions.contrast import Contrast
from bindscope.measures.binding.hypotheses.causal import (
    SHIPPED,
    Hypothesis,
    Variable,
    exchange,
    find_hypothesis,
)
from bindscope.measures.binding.hypotheses.scoring import column_of, draw_pairs, list_sites, score_hypotheses
from bindscope.model.transformer import Transformer
from bindscope.tasks.binding import BindingTask, Program, parse_program
from bindscope.theory.constructed import construct_dereferencer, constructed_circuit
from measures.constructed_pointers import chase_pointers, meet_in_the_middle

TASK = BindingTask(lines=6, max_depth=2)
BASE, SOURCE = (parse_program(f"k=9\nm=1\na=5\nz={z}\nb={name}\n#b:") for z, name in ((3, "a"), (8, "z")))


def predicted(name: str, variable: str = "") -> int:
    hypothesis = find_hypothesis(name)
    return int(exchange(hypothesis, hypothesis.variables(BASE.depth), BASE, SOURCE, variable))


def score(
    model: Transformer, first: str = "value-forward", second: str = "pointer-backward", n: int = 16
) -> xr.Dataset:
    rng = np.random.default_rng(0)
    return score_hypotheses(model, TASK, find_hypothesis(first), find_hypothesis(second), rng, n)


@pytest.fixture(scope="module")
def on_dereferencer() -> xr.Dataset:
    return score(construct_dereferencer(TASK.lines, TASK.max_depth))


def test_exchanging_a_variable_predicts_what_the_algorithm_would_answer() -> None:
    assert (BASE.answer, SOURCE.answer) == (5, 8)
    assert predicted("value-forward") == predicted("pointer-backward") == 5
    assert predicted("value-forward", "value 2") == 8  # the source's value arrives
    assert predicted("pointer-backward", "name 2") == 3  # the base is asked what the source's name holds
    assert predicted("pointer-backward", "name 1") == 5  # the same name is queried
    assert predicted("early-line") == predicted("early-line", "constant of line 1") == 9


@pytest.mark.parametrize("name", ["value-forward", "pointer-backward"])
def test_both_algorithms_answer_every_program(name: str) -> None:
    hypothesis = find_hypothesis(name)
    for depth in (1, 2):
        for base in draw_pairs(TASK, np.random.default_rng(1), 8, depth).base:
            assert exchange(hypothesis, hypothesis.variables(depth), base, base) == base.answer


def test_the_dereferencer_carries_values_and_no_pointers(on_dereferencer: xr.Dataset) -> None:
    scores = on_dereferencer.score
    assert scores.sel(hypothesis="value-forward", condition="model") == 1
    assert scores.sel(hypothesis="pointer-backward", condition="model") == 0
    for control in ("another position", "shuffled positions", "untrained"):
        assert scores.sel(hypothesis="value-forward", condition=control) < 0.2


def test_each_variable_is_found_where_the_circuit_puts_it(on_dereferencer: xr.Dataset) -> None:
    for index in np.flatnonzero(on_dereferencer.site_hypothesis == "value-forward"):
        site = on_dereferencer.isel(site=index)
        circuit = constructed_circuit(int(site.site_depth), TASK.max_depth)
        arrives = next(
            step.layer + 1 for step in circuit if step.target == str(site.site_position.item()) and step.layer
        )
        assert int(site.best_layer) == arrives
        assert float(site.rival.sel(condition="model", layer=arrives)) == 0
        assert float(site.rival.sel(condition="model", layer=arrives - 1)) == 1  # nothing has come yet


def test_a_transformer_that_chases_pointers_carries_pointers_and_no_values() -> None:
    scores = score(chase_pointers(TASK.lines, TASK.max_depth)).score.sel(condition="model")
    assert scores.sel(hypothesis="pointer-backward") == 1
    assert scores.sel(hypothesis="value-forward") == 0


def test_an_untrained_model_agrees_with_neither() -> None:
    model = Transformer(
        construct_dereferencer(TASK.lines, TASK.max_depth).config, torch.Generator().manual_seed(3)
    ).eval()
    assert (score(model).score.sel(condition="model") < 0.2).all()


def answer_line_1(lines: int) -> Transformer:
    """The heuristic written by hand: in layer 1 every token reads the value of the third, which is line 1's constant."""
    from bindscope.theory import constructed as by_hand

    model = construct_dereferencer(lines, 2)
    space = by_hand._Space(by_hand.n_positions(lines))
    wanted = torch.zeros(space.n_positions, space.n_positions)
    wanted[2] = by_hand.SHARP
    with torch.no_grad():
        for block in model.layers:
            block.attention.qkv.weight.zero_()
            block.attention.out.weight.zero_()
        query, key = wanted @ space.position, space.position
        by_hand._write_head(model.layers[1].attention, 0, query, key, space.value, space.answer)
    return model


@pytest.mark.parametrize(("true", "other"), [("early-line", "value-forward"), ("value-forward", "early-line")])
def test_the_heuristic_is_told_from_the_mechanism(true: str, other: str) -> None:
    model = answer_line_1(TASK.lines) if true == "early-line" else construct_dereferencer(TASK.lines, TASK.max_depth)
    found = score(model, true, other).score.sel(condition="model")
    assert found.sel(hypothesis=true) == 1
    assert found.sel(hypothesis=other) == 0


def test_a_variable_is_not_credited_with_what_its_ancestor_at_the_same_position_would_do() -> None:
    """One that holds the queried name alone at the colon, and fetches all else by value, holds no second name there."""
    scores = score(meet_in_the_middle(TASK.lines, TASK.max_depth))
    own = scores.isel(site=np.flatnonzero((scores.site_hypothesis == "pointer-backward") & (scores.site_depth == 2)))
    best = own.followed.sel(condition="model").max("layer")
    assert dict(zip(own.site_variable.values.tolist(), best.values.tolist(), strict=True)) == {"name 1": 1, "name 2": 0}


def test_only_pairs_on_which_the_two_disagree_are_counted() -> None:
    pairs = draw_pairs(TASK, np.random.default_rng(0), 16, 2)
    first, second = find_hypothesis("value-forward"), find_hypothesis("pointer-backward")
    contrast: Contrast = pairs.contrast
    for site in (*list_sites(pairs, 2, first, second), *list_sites(pairs, 2, second, first)):
        columns = pairs.columns(site.variable.position)
        for row in np.flatnonzero(site.counts):
            assert site.predicted[row] not in (pairs.base[row].answer, *site.rival[row])
            assert contrast.base[row, columns[row]] == contrast.source[row, columns[row]]
        if site.variable.name in ("value 1", "answer"):
            assert not site.counts.any()  # an input, and an answer that both give


def test_positions_are_those_of_the_base_programs_chain() -> None:
    text = BASE.text
    assert text[column_of("rhs 1", BASE)] == "5"
    assert text[column_of("rhs 2", BASE)] == "a"
    assert text[column_of("lhs 2", BASE)] == "b"
    assert (text[column_of("query", BASE)], text[column_of("colon", BASE)]) == ("b", ":")
    assert text[column_of("line 1", BASE)] == "9"
    assert column_of("line 6", BASE) == -1


def one(position: str = "query", compute: Callable[..., Any] = lambda program, lines: 3, **more: Any) -> Hypothesis:
    return Hypothesis("mine", lambda depth: [Variable("v", position, compute, **more)])


def _boom(program: Program, lines: tuple[int, ...]) -> int:
    return 1 // 0


@pytest.mark.parametrize(
    ("hypothesis", "said"),
    [
        (Hypothesis("mine", lambda depth: []), "it must return a list of Variable for depth 1, the answer last."),
        (Hypothesis("mine", lambda depth: [3]), "it must return a list of Variable"),  # type: ignore[list-item]
        (one("rhs 3"), "'v' lives at 'rhs 3', which a chain of depth 1 does not have"),
        (one("colom"), "'v' lives at 'colom'"),
        (one(parents=("w",)), "'v' needs 'w' before it."),
        (one(compute=lambda program, lines: "a"), "its last variable must be the answer, a digit, and is 'a'."),
        (one(compute=_boom), "mine failed, line"),
        (
            Hypothesis("value-forward", SHIPPED["value-forward"]),
            "the two hypotheses are both 'value-forward'; name two.",
        ),
        (Hypothesis("twin", SHIPPED["value-forward"]), "predict the same answers on the pairs drawn"),
    ],
)
def test_a_hypothesis_that_cannot_be_scored_is_refused_in_a_sentence(hypothesis: Hypothesis, said: str) -> None:
    model = construct_dereferencer(TASK.lines, TASK.max_depth)
    with pytest.raises(BindscopeError) as problem:
        score_hypotheses(model, TASK, hypothesis, find_hypothesis("value-forward"), np.random.default_rng(0), 8)
    assert said in str(problem.value)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("value-foward", "there is no hypothesis 'value-foward'; one of your own is PATH.py:NAME. Did you mean 'value-forward'?"),
        ("nowhere.py:f", "--first nowhere.py:f: there is no file nowhere.py."),
    ],
)  # fmt: skip
def test_a_hypothesis_that_is_not_there_is_refused_with_a_hint(given: str, said: str) -> None:
    with pytest.raises(BindscopeError) as problem:
        find_hypothesis(given)
    assert said in str(problem.value)


def test_one_in_a_file_is_found(tmp_path: Path) -> None:
    location = f"{Path(__file__).parents[2]}/examples/hypotheses.py:last_line"
    found = find_hypothesis(location)
    assert (found.name, found.location) == ("last_line", location)
    assert [each.position for each in found.variables(2)] == ["query", "colon"]
