from __future__ import annotations

from dataclasses import asdict, replace
from itertools import pairwise

import numpy as np
import pytest

from bindscope.errors import BindscopeError
from bindscope.tasks.binding import BindingTask, Curriculum, tokens_to_programs
from bindscope.tasks.binding.curriculum import Stage
from bindscope.tasks.loading import StagedLoader, StagedTask

TASK = BindingTask(lines=8, queries=8, balance="weights", curriculum=Curriculum())


def letters_and_lines(batch) -> tuple[int, int]:
    programs, _ = tokens_to_programs(batch.tokens, batch.layout.n_blocks)
    return int(programs.variables.max()) + 1, programs.n_lines


def test_letters_grow_first_and_then_lines_up_to_the_whole_task():
    stages = TASK.stages
    assert stages[0] == Stage(4, 2)
    assert stages[-1] == Stage(TASK.n_variables, TASK.lines)
    assert len(set(stages)) == len(stages)
    for before, after in pairwise(stages):
        assert (after.n_letters > before.n_letters) != (after.n_lines > before.n_lines)
        assert after.n_lines == 2 or before.n_letters == TASK.n_variables


@pytest.mark.parametrize("stage", range(len(TASK.stages)))
def test_a_stage_draws_no_letter_and_no_line_beyond_its_own(stage):
    for seed in range(20):
        n_letters, n_lines = letters_and_lines(TASK.sample_stage(np.random.default_rng(seed), 8, stage))
        assert n_letters <= TASK.stages[stage].n_letters
        assert n_lines <= TASK.stages[stage].n_lines


def test_a_probe_has_the_full_length_of_its_stage():
    for stage, size in enumerate(TASK.stages):
        assert letters_and_lines(TASK.sample_probe(np.random.default_rng(0), 64, stage)) == (
            size.n_letters,
            size.n_lines,
        )


def test_every_batch_has_about_as_many_tokens_as_a_full_one():
    full = 16 * (4 * TASK.lines + 3 * TASK.queries)
    for stage in range(len(TASK.stages)):
        batch = TASK.sample_stage(np.random.default_rng(stage), 16, stage)
        n_lines = letters_and_lines(batch)[1]
        assert full - 7 * n_lines < batch.tokens.size <= full


def test_some_batches_are_the_whole_task_where_that_is_asked_for():
    task = BindingTask(lines=8, queries=8, balance="weights", curriculum=Curriculum(full=0.4))
    lines = [letters_and_lines(task.sample_stage(np.random.default_rng(seed), 2, 0))[1] for seed in range(300)]
    assert set(lines) == {2, 8}
    assert 0.3 < np.mean(np.array(lines) == 8) < 0.5


def test_the_whole_task_is_all_there_is_at_the_end_where_that_is_asked_for():
    task = BindingTask(lines=8, queries=8, balance="weights", curriculum=Curriculum(whole_at_end=True))
    lines = {
        stage: {letters_and_lines(task.sample_stage(np.random.default_rng(seed), 2, stage))[1] for seed in range(30)}
        for stage in (len(task.stages) - 2, len(task.stages) - 1)
    }
    assert lines[len(task.stages) - 1] == {8}
    assert len(lines[len(task.stages) - 2]) > 1


def test_short_programs_extend_chains_of_every_depth_alike():
    """With uniform weights a third line refers to line 1 as often as to line 2; cubic ones prefer the deeper."""
    batch = TASK.sample_probe(np.random.default_rng(0), 4000, TASK.stages.index(Stage(26, 3)))
    programs, _ = tokens_to_programs(batch.tokens, batch.layout.n_blocks)
    chained = programs.reference[programs.reference[:, 1] == 0]
    refers = chained[chained[:, 2] >= 0, 2]
    assert 0.45 < np.mean(refers == 0) < 0.55


def test_scheduled_programs_extend_short_chains_first_where_that_is_asked_for():
    """Over five lines with two constants first, each constant is referred to, unless a deep chain was drawn against odds."""
    unreferenced = {}
    for exponent in (0.0, -3.0):
        curriculum = Curriculum(side_by_side=True, p_constant=0.0, exponent=exponent)
        task = BindingTask(lines=8, queries=8, balance="weights", curriculum=curriculum)
        batch = task.sample_probe(np.random.default_rng(0), 4000, task.stages.index(Stage(26, 5)))
        programs, _ = tokens_to_programs(batch.tokens, batch.layout.n_blocks)
        referred_to = np.stack([(programs.reference == line).any(1) for line in range(5)], axis=1)
        unreferenced[exponent] = (programs.is_constant & ~referred_to).any(1).mean()
    # lines 3, 4 and 5 extend one of two chains each: all the same one with chance (1/2)² or, by depth, 1/9 · 1/28
    assert unreferenced[0.0] == pytest.approx(1 / 4, abs=0.02)
    assert unreferenced[-3.0] == pytest.approx(1 / 9 / 28, abs=0.003)


def test_scheduled_programs_begin_with_two_to_half_their_lines_of_constants_where_that_is_asked_for():
    task = BindingTask(lines=8, queries=8, balance="weights", curriculum=Curriculum(side_by_side=True, full=0.5))
    size = len(task.stages) - 1
    scheduled, _ = tokens_to_programs(task.sample_probe(np.random.default_rng(0), 4000, size).tokens, task.queries)
    n_first = scheduled.is_constant.cumprod(1).sum(1)  # constants before the first reference
    at_least = np.array([(n_first >= n).mean() for n in (1, 2, 3, 4, 5)])
    # of those given, each number from 2 to 4 is as likely; each further line is a constant half of the time
    expected = [sum(0.5 ** max(0, n - first) for first in (2, 3, 4)) / 3 for n in (1, 2, 3, 4, 5)]
    assert at_least == pytest.approx(expected, abs=0.03)


def test_chains_side_by_side_never_branch():
    task = BindingTask(lines=8, queries=8, balance="weights", curriculum=Curriculum(side_by_side=True, p_constant=0.0))
    for size in range(task.stages.index(Stage(26, 3)), len(task.stages)):
        programs, _ = tokens_to_programs(
            (batch := task.sample_probe(np.random.default_rng(0), 500, size)).tokens, batch.layout.n_blocks
        )
        n_references = np.stack([(programs.reference == line).sum(1) for line in range(programs.n_lines)])
        assert n_references.max() == 1
        assert (programs.depth == 1).sum(1).min() >= 2
        assert programs.depth.max() == min(task.max_depth, programs.n_lines - 1)


def test_letters_are_added_at_so_many_lines():
    stages = Curriculum(letters_at=4).stages(n_letters=26, n_lines=8)
    assert [(stage.n_letters, stage.n_lines) for stage in stages] == [
        (4, 2), (4, 3), (4, 4), (7, 4), (12, 4), (20, 4), (26, 4), (26, 5), (26, 6), (26, 8),
    ]  # fmt: skip
    assert Curriculum(letters_at=4).stages(n_letters=4, n_lines=3)[-1] == Stage(4, 3)


def test_the_whole_task_among_scheduled_batches_and_in_evaluation_has_its_own_constants():
    task = BindingTask(
        lines=8, queries=8, balance="weights", curriculum=Curriculum(side_by_side=True, whole_at_end=True)
    )
    whole = task.sample_stage(np.random.default_rng(0), 4000, len(task.stages) - 1)
    for batch in (whole, task.sample_evaluation(np.random.default_rng(0), 4000)["test"]):
        programs, _ = tokens_to_programs(batch.tokens, batch.layout.n_blocks)
        assert programs.is_constant[:, 1].mean() == pytest.approx(0.5, abs=0.03)


def test_evaluation_is_the_whole_task():
    split = TASK.sample_evaluation(np.random.default_rng(0), 200)["test"]
    assert letters_and_lines(split) == (26, 8)


def test_a_loader_gives_the_same_batch_for_the_same_step_and_stage_and_another_probe():
    loader = StagedLoader(TASK, seed=3, batch_size=4)
    assert np.array_equal(loader.batch(5, 1).tokens, loader.batch(5, 1).tokens)
    assert not np.array_equal(loader.probe(10, 0).tokens, loader.probe(20, 0).tokens)
    assert loader.stages[0] == "4 letters, 2 lines"


def test_the_binding_task_is_staged():
    assert isinstance(TASK, StagedTask)
    assert BindingTask().stages == ()


@pytest.mark.parametrize(
    ("settings", "names"),
    [
        ({"first_lines": 1}, "first_lines"),
        ({"first_letters": 1}, "first_letters"),
        ({"pass_at": 0}, "pass_at"),
        ({"pass_at": 1.5}, "pass_at"),
        ({"full": 1}, "full"),
        ({"exponent": -11}, "exponent"),
        ({"p_constant": 1.5}, "p_constant"),
    ],
)
def test_an_impossible_curriculum_is_refused(settings, names):
    with pytest.raises(BindscopeError, match=names):
        Curriculum(**settings)


@pytest.mark.parametrize(
    ("settings", "names"),
    [
        ({"min_lines": 2, "curriculum": Curriculum()}, "min_lines"),
        ({"n_variables": 16, "curriculum": Curriculum(first_letters=20)}, "curriculum"),
        ({"lines": 4, "curriculum": Curriculum(first_letters=8, first_lines=6)}, "curriculum"),
    ],
)
def test_a_curriculum_that_does_not_fit_its_task_is_refused(settings, names):
    with pytest.raises(BindscopeError, match=names):
        BindingTask(**settings)


def test_a_curriculum_may_begin_with_the_whole_task():
    whole = Curriculum(first_letters=TASK.n_variables, first_lines=8)
    assert BindingTask(lines=8, queries=8, balance="weights", curriculum=whole).stages == (Stage(TASK.n_variables, 8),)


def test_without_chains_side_by_side_a_stage_is_drawn_as_the_task_is():
    """Fewer letters and another exponent apart; the line counts are the stage's."""
    stage, task = Stage(n_letters=5, n_lines=6), TASK
    plain = task._scheduled_grammar(stage)
    changed = {"n_variables": 5, "exponent": task.curriculum.exponent, "branches": True}
    assert asdict(plain) == asdict(replace(task.grammar, **changed))
