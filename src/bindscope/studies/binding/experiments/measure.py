"""What experiments measure in trained models beyond the records of their training."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import xarray as xr

from bindscope.errors import BindscopeError
from bindscope.measures.binding.longest_chain import fraction_of_longest, sample_longest_chain
from bindscope.measures.binding.writes import attention_to_writes, fraction_of_writes, sample_rewritten
from bindscope.measures.evaluation import build_evaluator, read_answers
from bindscope.measures.identity_paths import (
    PARTS,
    accuracy_by_depth,
    compare_parts,
    remove_parts,
    scales_of,
    without_part,
)
from bindscope.model.transformer import Transformer
from bindscope.runs.directory import Run
from bindscope.studies.binding.generalisation.measure import measure_grid
from bindscope.studies.framework.experiments import SHIPPED_RUNS, Cell, Progress
from bindscope.studies.framework.measuring import measure_cells, merge_parts
from bindscope.tasks.binding import BindingTask
from bindscope.tasks.binding.program import FIRST_LETTER

SEED = 20_896  # draws what is measured; training never uses it
N_CHECKPOINTS = 10  # of a run, spread evenly over those it kept
N_WRITES = 300  # questions of each situation
N_LONGEST = 600
N_AVOIDANCE = 1_000
N_LENGTH = 600  # programs of each length
N_GRID = 100  # programs of each length and depth
LENGTHS = (6, 10, 14, 18, 22, 26)
N_PARTS, N_PATTERNS = 200, 64  # programs that parts are removed on, and that attention is read on


def measure_writes(runs: Mapping[Cell, Run], on_progress: Progress = None) -> xr.Dataset:
    """Which write each model answers with, over (variant, seed, checkpoint, situation, outcome), and in its last
    checkpoint ``write_attention`` over (variant, seed, layer, head, write); see ``measures.writes``.

    ``laptop_…`` are the same of the shipped ``binding-laptop``, at 16 lines.
    """
    measured = measure_cells(runs, _writes_of, on_progress)
    shipped = _writes_of(Run.open(SHIPPED_RUNS / "binding-laptop"))
    shared = ("situation", "outcome", "write")
    names = {str(name): f"laptop_{name}" for name in shipped.variables if name not in shared}
    return merge_parts([measured, shipped.rename(names)])


def measure_longest_chain(runs: Mapping[Cell, Run], on_progress: Progress = None) -> xr.Dataset:
    """How often models answer with the longest chain's digit, and with another's, over (variant, seed, checkpoint)."""

    def measure_run(run: Run) -> xr.Dataset:
        questions = sample_longest_chain(_task_of(run), np.random.default_rng(SEED), N_LONGEST)

        def measure(model: Transformer) -> xr.Dataset:
            longest, another = fraction_of_longest(model, questions)
            return xr.Dataset(
                {"longest_chain_fraction": longest, "another_chain_fraction": another, "n_longest": N_LONGEST}
            )

        return _over_checkpoints(run, measure)

    return measure_cells(runs, measure_run, on_progress)


def measure_avoidance(runs: Mapping[Cell, Run], on_progress: Progress = None) -> xr.Dataset:
    """How often the answer to an ordinary question is a combination that training never shows, and so wrong.

    ``held_out_predictions`` over (variant, seed, checkpoint): where a model has learned what does not occur, it is rarer
    than the fraction of combinations that are held out.
    """

    def measure_run(run: Run) -> xr.Dataset:
        task = _task_of(run)
        batch = task.sample_evaluation(np.random.default_rng(SEED), N_AVOIDANCE)["test"]
        asked = batch.tokens[:, -2] - FIRST_LETTER  # [program]: the queried variable

        def measure(model: Transformer) -> xr.Dataset:
            digit = read_answers(model, batch)[:, : task.n_constants].argmax(1)
            return xr.Dataset({"held_out_predictions": task.held_out_combinations[asked, digit].mean()})

        return _over_checkpoints(run, measure)

    return measure_cells(runs, measure_run, on_progress)


def measure_lengths(runs: Mapping[Cell, Run], on_progress: Progress = None) -> xr.Dataset:
    """Accuracy of each last checkpoint at other lengths: ``accuracy_at`` over (variant, seed, lines, depth)."""

    def measure_run(run: Run) -> xr.Dataset:
        model, task = run.checkpoint("last"), _task_of(run)
        rows = []
        for lines in LENGTHS:
            at_length = replace(task, lines=lines, min_lines=None, queries=1, reassign=0.0)
            split = build_evaluator(at_length, N_LENGTH, SEED)(model)["test"]
            by_depth = [np.nan if value is None else value for value in split["accuracy_by_depth"]]
            rows.append(by_depth + [np.nan] * (task.max_depth - len(by_depth)))
        fractions = xr.DataArray(rows, {"lines": list(LENGTHS), "depth": range(1, task.max_depth + 1)})
        return fractions.to_dataset(name="accuracy_at")

    return measure_cells(runs, measure_run, on_progress)


def measure_length_grid(runs: Mapping[Cell, Run], on_progress: Progress = None) -> xr.Dataset:
    """Each last checkpoint over other lengths and depths, as VB10 reads it: ``grid_accuracy`` and others over
    (variant, seed, grid_lines, grid_depth)."""

    def measure_run(run: Run) -> xr.Dataset:
        grid = measure_grid(run, N_GRID, np.random.default_rng(SEED))
        return grid.rename({name: f"grid_{name}" for name in [*grid.data_vars, *grid.dims]})

    return measure_cells(runs, measure_run, on_progress)


def measure_identity(runs: Mapping[Cell, Run], on_progress: Progress = None) -> xr.Dataset:
    """What the identity-scaling terms of the shipped ``binding-laptop`` do; see ``measures.identity_paths``."""
    laptop = Run.open(SHIPPED_RUNS / "binding-laptop")
    model = laptop.checkpoint("last")
    batch = laptop.config.task.sample_evaluation(np.random.default_rng(SEED), N_PARTS)["test"]
    removed = remove_parts(model, batch, on_progress).rename(depth="laptop_depth")
    steps = [step for step in laptop.steps if step >= 100]
    scales = [scales_of(laptop.checkpoint(step)).expand_dims(laptop_step=[step]) for step in steps]
    over_training = xr.concat(scales, "laptop_step").rename(scaled_a="scaled_a_at", scaled_b="scaled_b_at")
    return merge_parts([removed, compare_parts(model, batch.take(slice(N_PATTERNS))), over_training])


def measure_seed_paths(runs: Mapping[Cell, Run], on_progress: Progress = None) -> xr.Dataset:
    """What the identity-scaling terms of each last checkpoint do, over (variant, seed, …).

    ``accuracy_without_later`` (…, part): accuracy, mean of all depths, with a part taken out of all layers but the
    first; ``whole_accuracy`` the same of the whole model; ``scaled_a``, ``scaled_b`` and ``likeness`` as in
    ``measures.identity_paths``.
    """

    def measure_run(run: Run) -> xr.Dataset:
        model, task = run.checkpoint("last"), _task_of(run)
        batch = task.sample_evaluation(np.random.default_rng(SEED), N_PARTS)["test"]
        depths = np.arange(1, task.max_depth + 1)
        later = [(layer, head) for layer in range(1, model.config.n_layers) for head in range(model.config.n_heads)]
        without = []
        for part in PARTS:
            with without_part(model, part, later):
                without.append(accuracy_by_depth(model, batch, depths).mean())
        paths = compare_parts(model, batch.take(slice(N_PATTERNS)))[["scaled_a", "scaled_b", "likeness"]]
        paths["accuracy_without_later"] = xr.DataArray(without, {"part": list(PARTS)})
        paths["whole_accuracy"] = accuracy_by_depth(model, batch, depths).mean()
        return paths

    return measure_cells(runs, measure_run, on_progress)


def _writes_of(run: Run) -> xr.Dataset:
    questions = sample_rewritten(_task_of(run), np.random.default_rng(SEED), N_WRITES)
    fractions = _over_checkpoints(run, lambda model: fraction_of_writes(model, questions))
    return fractions.merge(attention_to_writes(run.checkpoint("last"), questions))


def _over_checkpoints(run: Run, measure: Callable[[Transformer], xr.Dataset]) -> xr.Dataset:
    """A measurement at evenly chosen checkpoints from step 100 on, along ``checkpoint``."""
    steps = [step for step in run.steps if step >= 100] or list(run.steps)
    chosen = sorted({steps[round(position)] for position in np.linspace(0, len(steps) - 1, N_CHECKPOINTS)})
    return xr.concat([measure(run.checkpoint(step)).expand_dims(checkpoint=[step]) for step in chosen], "checkpoint")


def _task_of(run: Run) -> BindingTask:
    task = run.config.task
    if not isinstance(task, BindingTask):
        raise BindscopeError(f"{run.name}: this is measured in binding runs only.")
    return task
