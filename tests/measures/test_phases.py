"""Phases of curves whose phases we chose, and of curves that have none."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from bindscope.errors import BindscopeError
from bindscope.measures.binding.phases import (
    PHASES,
    TRANSITION,
    PhaseCriterion,
    PhaseCurves,
    curves_from_evaluations,
    detect_phases,
    read_evaluations,
)
from bindscope.measures.phases import find_transition
from measures.simulated_runs import SimulatedRun


def curves_of(run: SimulatedRun) -> PhaseCurves:
    records = run.records()
    return curves_from_evaluations([record["step"] for record in records], records)


def plain_curves(accuracy, chain, early, every: int = 100, n_examples: int = 2000) -> PhaseCurves:
    return PhaseCurves(
        steps=np.arange(len(accuracy)) * every,
        accuracy=np.array(accuracy, dtype=float),
        follows_chain=np.array(chain, dtype=float),
        follows_early_lines=np.array(early, dtype=float),
        worst_depth=np.array(accuracy, dtype=float),
        chance=0.1,
        n_examples=n_examples,
    )


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("leaves_random", "masters", "last_step"), [(100, (1200, 1400, 1500), 2000), (600, (2000, 2600, 2700), 4000)]
)
def test_the_phases_of_a_simulated_run_lie_where_they_were_put(seed, leaves_random, masters, last_step):
    run = SimulatedRun(last_step, 50, leaves_random, masters, seed=seed)
    random, heuristic, systematic = detect_phases(curves_of(run))
    assert (random.name, heuristic.name, systematic.name) == PHASES
    assert (random.first_step, random.last_step) == (0, leaves_random)
    assert heuristic.first_step == leaves_random + 50
    assert masters[0] - 250 <= heuristic.last_step <= masters[0]  # it wanes as depth 1 is learned
    assert masters[-1] - 50 <= systematic.first_step <= masters[-1] + 50
    assert systematic.last_step == last_step
    assert random.accuracy < 0.15 < 0.5 < heuristic.accuracy < 0.75 < 0.99 < systematic.accuracy


def test_a_run_that_never_leaves_the_plateau_has_two_phases():
    phases = detect_phases(curves_of(SimulatedRun(1500, masters=(None, None, None))))
    assert [(phase.name, phase.last_step) for phase in phases] == [("random", 100), ("heuristic", 1500)]


def test_a_run_that_only_ever_guesses_has_one_phase():
    phases = detect_phases(curves_of(SimulatedRun(1500, leaves_random=None, masters=(None, None, None))))
    assert [(phase.name, phase.first_step, phase.last_step) for phase in phases] == [("random", 0, 1500)]


def test_a_run_that_learns_the_chain_without_the_heuristic_skips_the_heuristic():
    phases = detect_phases(curves_of(SimulatedRun(1500, leaves_random=None, masters=(500, 500, 500))))
    assert [phase.name for phase in phases] == ["random", "systematic"]


def test_a_run_stopped_as_soon_as_it_had_learned_is_systematic():
    run = SimulatedRun(1600)
    phases = detect_phases(curves_of(run))
    assert phases[-1].name == "systematic"
    assert phases[-1].n_evaluations >= 2


def test_mastering_only_shallow_chains_is_not_systematic():
    phases = detect_phases(curves_of(SimulatedRun(2000, masters=(800, 900, None))))
    assert [phase.name for phase in phases] == ["random", "heuristic"]


def test_a_single_evaluation_is_the_phase_it_reads_as():
    phases = detect_phases(curves_of(SimulatedRun(0)))
    assert [(phase.name, phase.first_step, phase.last_step) for phase in phases] == [("random", 0, 0)]


def test_one_lucky_evaluation_and_one_loss_spike_change_no_phase():
    accuracy = [0.1] * 5 + [0.6] * 20 + [1.0] * 20
    chain = [0.1] * 5 + [0.05] * 20 + [1.0] * 20
    early = [0.2] * 5 + [0.9] * 20 + [0.0] * 20
    accuracy[12], chain[12], early[12] = 1.0, 1.0, 0.0  # lucky
    accuracy[38], chain[38], early[38] = 0.1, 0.1, 0.2  # spike
    phases = detect_phases(plain_curves(accuracy, chain, early))
    assert [(p.name, p.first_step, p.last_step) for p in phases] == [
        ("random", 0, 400),
        ("heuristic", 500, 2400),
        ("systematic", 2500, 4400),
    ]
    assert phases[1].consistency == pytest.approx(19 / 20)


def test_shuffling_a_run_in_time_destroys_its_phases():
    curves = curves_of(SimulatedRun(4000, 50, 1000, (2000, 2200, 2300)))
    assert [phase.name for phase in detect_phases(curves)] == list(PHASES)
    rng = np.random.default_rng(0)
    complete = 0
    for _ in range(50):
        order = rng.permutation(len(curves.steps))
        names = ("accuracy", "follows_chain", "follows_early_lines", "worst_depth")
        shuffled = dataclasses.replace(curves, **{name: getattr(curves, name)[order] for name in names})
        found = detect_phases(shuffled)
        complete += len(found) == 3
        assert sum(phase.n_evaluations for phase in found) < len(order) / 3
    assert complete == 0


def test_noise_around_chance_makes_no_phase_but_random():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        accuracy, chain, early = rng.binomial(500, 0.1, (3, 200)) / 500
        phases = detect_phases(plain_curves(accuracy, chain, early, n_examples=500))
        assert [phase.name for phase in phases] == ["random"]


def test_answering_some_constant_of_the_program_is_a_transition():
    assert list(read_evaluations(plain_curves([0.35], [0.3], [0.35]))) == [TRANSITION]


def test_a_small_split_must_be_further_above_chance_to_count():
    few, many = (plain_curves([0.2], [0.0], [0.9], n_examples=n) for n in (50, 5000))
    assert list(read_evaluations(few)) == ["random"]
    assert list(read_evaluations(many)) == ["heuristic"]


def test_the_criterion_is_data_and_says_its_own_numbers():
    strict = PhaseCriterion(chain_fraction=0.97)
    assert "97 %" in strict.describe()["systematic"]
    curves = plain_curves([0.95] * 4, [0.95] * 4, [0.0] * 4)
    assert [phase.name for phase in detect_phases(curves)] == ["systematic"]
    assert detect_phases(curves, strict) == []


@pytest.mark.parametrize("seed", range(3))
def test_each_hop_is_learned_when_it_was(seed):
    run = SimulatedRun(2000, 50, 100, (1200, 1400, None), seed=seed, n_examples=3000)
    records = run.records()
    by_depth = np.array([record["test"]["accuracy_by_depth"] for record in records], dtype=float)
    steps = [record["step"] for record in records]
    one, two, three = (find_transition(steps, column) for column in by_depth.T)
    assert abs(one - 1200) <= 100  # the heuristic already answers some, so it may come a little sooner
    assert abs(two - 1400) <= 100
    assert three is None


def test_a_transition_must_last():
    steps = np.arange(10)
    assert find_transition(steps, [0, 0.95, 0, 0, 0, 0.95, 0.95, 0.95, 0.95, 0.95]) == 5
    assert find_transition(steps, [0, 0, 0, 0.95, 0.95, 0.95, 0.95, 0.5, 0.95, 0.95]) == 3
    assert find_transition(steps, [0.95, 0.95, 0.95, 0, 0, 0, 0, 0, 0, 0.95]) is None
    assert find_transition(steps[:3], [np.nan, np.nan, np.nan]) is None
    assert find_transition([0], [0.95]) == 0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: PhaseCriterion(chain_fraction=1.2), "chain_fraction must lie in"),
        (lambda: PhaseCriterion(persist=0), "persist must be at least 1"),
        (lambda: curves_from_evaluations([], []), "no evaluation yet"),
        (lambda: curves_from_evaluations([0], [{"test": {"accuracy": 1.0}}]), "binding runs only"),
        (lambda: plain_curves([0.1, 0.1], [0.1], [0.1, 0.1]), "one value per step"),
        (lambda: plain_curves([0.1, 0.1], [0.1, 0.1], [0.1, 0.1], every=-1), "steps must increase"),
    ],
)
def test_what_cannot_be_read_is_refused(make, message):
    with pytest.raises(BindscopeError, match=message):
        make()
