"""The results ``transplants`` and ``retraining``: which part of a model after the plateau ends it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import xarray as xr

from bindscope.errors import BindscopeError
from bindscope.studies.binding.learning.measure import phases_of_run
from bindscope.studies.framework.claims import Drawing
from bindscope.studies.framework.experiments import defer
from bindscope.studies.framework.measuring import PACKED, round_bits
from bindscope.studies.framework.results import Context, NotTestable, OnProgress, Result

if TYPE_CHECKING:
    from bindscope.measures.transplanting import Asked
    from bindscope.model.config import ModelConfig
    from bindscope.runs.directory import Run

N_TRANSPLANTED, N_RETRAINED = 500, 800  # programs
TARGET = 0.5  # the plateau is left when at least this fraction of misleading programs is answered by the chain
MOST_STEPS, EVERY, N_SEEDS = 300, 10, 2  # of the saved result: each order of the data takes eight minutes of a core


@dataclass(frozen=True)
class Window:
    """Saved steps around the end of the plateau, the phase before the last."""

    early: int  # the last but one on it, so that there is something to shorten
    before: int  # the last one on it
    after: int  # the first of the last phase
    last: int


@dataclass(frozen=True)
class Retraining:
    """How cells are trained on: data seeds, the most steps, and the steps between two evaluations."""

    n_seeds: int = N_SEEDS
    most_steps: int = MOST_STEPS
    every: int = EVERY


def find_window(run: Run) -> Window:
    """The checkpoints that transplants are made between; a run without a plateau has none."""
    phases = phases_of_run(run)
    names = [phase.name for phase in phases]
    if names[-2:] != ["heuristic", "systematic"]:
        raise NotTestable("transplants need a run with a plateau and its end: a heuristic phase, then a systematic one")
    plateau, end = phases[-2:]
    on = [step for step in run.steps if plateau.first_step <= step <= plateau.last_step]
    beyond = [step for step in run.steps if step >= end.first_step]
    if not on or not beyond:
        raise NotTestable("no checkpoint was saved on the plateau, or none after it")
    return Window(on[-2] if len(on) > 1 else on[-1], on[-1], beyond[0], beyond[-1])


def window_steps(run: Run) -> Sequence[int]:
    """The checkpoints that ``transplants`` reads; none where the run has no plateau."""
    try:
        window = find_window(run)
    except BindscopeError:
        return ()
    return sorted({window.early, window.before, window.after, window.last})


def compute_transplants(context: Context) -> xr.Dataset:
    """What ``transplant_plateau`` gives, over (donor, …): into the last checkpoint on the plateau, from the first one of the
    last phase and from the last one of all."""
    from bindscope.measures.binding.plateau_transplants import ask_by_depth, list_rows, transplant_plateau

    run, window = context.run, find_window(context.run)
    task: Any = run.config.task
    asked = ask_by_depth(task, context.rng, context.n)
    rows, before = list_rows(run.config.model, list(task.token_groups)), run.checkpoint(window.before)
    donors = list(dict.fromkeys((window.after, window.last)))
    tick = _counter(context.on_progress, len(donors) * len(rows) * 2)
    parts = [transplant_plateau(before, run.checkpoint(step), rows, asked, context.seed, tick) for step in donors]
    dataset = xr.concat(parts, xr.IndexVariable("donor", donors))
    about = {"receiver": window.before, "n": context.n, "interval": "95 %, Wilson; of fractions of the way, bootstrap"}
    return _packed(dataset).assign_attrs(about)


def compute_retraining(context: Context) -> xr.Dataset:
    """What ``measure_retraining`` gives with its usual parts."""
    from bindscope.measures.binding.plateau_transplants import ask_by_depth

    run, window = context.run, find_window(context.run)
    asked = ask_by_depth(run.config.task, context.rng, context.n)
    rows = retrained_rows(run.config.model)
    dataset = measure_retraining(run, window.early, window.after, rows, asked, Retraining(), context.on_progress)
    return _packed(dataset).assign_attrs(n=context.n, interval=f"none: {N_SEEDS} orders of the data")


def measure_retraining(
    run: Run,
    receiver: int,
    donor: int,
    rows: Sequence[str],
    asked: Asked,
    how: Retraining,
    on_progress: OnProgress | None = None,
) -> xr.Dataset:
    """What ``retrain`` gives of two checkpoints, with the run's own task and settings; the score is the fraction of
    misleading programs that is answered by the chain."""
    from bindscope.measures.binding.plateau_transplants import MISLEADING
    from bindscope.measures.retraining import CONDITIONS, cell_config, retrain
    from bindscope.measures.transplanting import answer_right, find_row
    from bindscope.runs.data import prepare_data
    from bindscope.tasks.loading import StagedLoader
    from bindscope.training.schedule import learning_rate_factor

    config, models = run.config, (run.checkpoint(receiver), run.checkpoint(donor))
    seeds = range(how.n_seeds)
    loaders = {seed: prepare_data(replace(config, seed=config.seed + 1 + seed)).loader for seed in seeds}
    if any(isinstance(loader, StagedLoader) for loader in loaders.values()):
        raise NotTestable(
            "this run's data were scheduled in stages (task.curriculum), and retraining does not follow them; "
            "retrain a run without a curriculum, such as binding-plain."
        )
    factor = learning_rate_factor(config.training.schedule, receiver, run.manifest.total_steps)
    cells = cell_config(config.training, factor, how.most_steps, how.every, TARGET)
    batch = asked.batch.take(asked.splits[MISLEADING])  # type: ignore[arg-type]
    named = {row: find_row(models[0], row, asked) for row in rows}
    tick = _counter(on_progress, how.n_seeds * (1 + len(rows) * len(CONDITIONS)))
    dataset = retrain(*models, named, loaders, cells, lambda model: float(answer_right(model, batch).mean()), tick)
    return dataset.assign_attrs(receiver=receiver, donor=donor, n_misleading=len(batch))


def retrained_rows(config: ModelConfig) -> list[str]:
    """The six parts that cells are made of: together all weights but the LayerNorms."""
    rest = f"L1-{config.n_layers - 1}"
    later = [f"{rest}.QK", f"{rest}.OV"] if config.n_layers > 1 else []
    mlps = ["MLP"] * bool(config.layers_with_mlp)
    return ["embeddings", "L0.QK + L0.OV", *later, *mlps, *([] if config.tied else ["unembedding"])]


def _counter(on_progress: OnProgress | None, total: int) -> Callable[[], None]:
    done = 0

    def tick() -> None:
        nonlocal done
        done += 1
        if on_progress is not None:
            on_progress(done, total)

    return tick


def _packed(dataset: xr.Dataset) -> xr.Dataset:
    for name, values in dataset.data_vars.items():
        if values.dtype.kind == "f":
            dataset[name] = values.copy(data=round_bits(values.values))
        dataset[name].encoding = dict(PACKED) if values.ndim > 1 else {}
    return dataset


RESULTS = (
    Result("transplants", "transplanting parts across the plateau's end", compute_transplants, n=N_TRANSPLANTED,
           steps=window_steps, passes=100, on_demand=True),
    Result("retraining", "training on with parts given early", compute_retraining, n=N_RETRAINED,
           steps=window_steps, passes=1000, on_demand=True),
)  # fmt: skip

DRAWINGS = (
    Drawing(
        "transplants",
        "Which part of a model after the plateau makes one on it follow chains",
        ("transplants",),
        defer(f"{__package__}.draw", "draw_transplants"),
    ),
    Drawing(
        "retraining",
        "Which part, given early, ends the plateau sooner",
        ("retraining",),
        defer(f"{__package__}.draw", "draw_retraining"),
    ),
)
