"""Results about what the residual stream holds: subspaces of names and values, probes, and what is left of the heuristic."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from bindscope.errors import NotYet
from bindscope.studies.binding.learning.measure import phase_checkpoints, phases_of_run
from bindscope.studies.binding.mechanism.measure import (
    EXCLUDED,
    FIRST_ROOT_LINE,
    LEAST_LINES,
    sample_pairs,
    track_steps,
)
from bindscope.studies.framework.measuring import compute_trajectory
from bindscope.studies.framework.results import Context, NotTestable, OnProgress, Result, last_step
from bindscope.studies.framework.training import tell_training
from bindscope.tasks.binding import sample_name_pairs

if TYPE_CHECKING:
    import torch

    from bindscope.model.transformer import Transformer
    from bindscope.runs.directory import Run
    from bindscope.subspaces import Search, Subspace
    from bindscope.tasks.binding import CounterfactualPairs

N_PAIRS = 400  # half of them are fitted on, half tested
CROSS = "other subspace"  # that of names on pairs that differ in a value, and the other way round
KEPT_OF_SUBSPACES = ("success_fraction", "success_low", "success_high", "kept_fraction", "score")


def compute_subspaces(context: Context) -> xr.Dataset:
    """Patching inside the subspaces of values and of names, fitted on one half of the pairs, tested on the other."""
    import torch

    from bindscope.measures.binding.mechanism import accuracy_on
    from bindscope.subspaces import Subspace, default_search, measure_subspace

    model, generator = context.run.checkpoint("last"), _generator(context.seed)
    half = max(1, context.n // 2)
    parts, accuracy = [], []
    places: dict[str, tuple[Search, CounterfactualPairs, Subspace]] = {}
    for index, (quality, (fit, test)) in enumerate(sample_halves(context.run, context.rng, half).items()):
        search = default_search(model, quality)  # type: ignore[arg-type]
        found = measure_subspace(model, fit, test, search, generator, on_progress=_part(context.on_progress, index, 2))
        part = found[list(KEPT_OF_SUBSPACES)]
        for name in ("rank", "layer"):
            part[f"search_{name}"] = int(found.attrs[name])
        part["search_position"] = str(found.attrs["position"])
        parts.append(part)
        accuracy.append(accuracy_on(model, test))
        places[quality] = search, test, Subspace(torch.from_numpy(found.basis.values), quality)
    crossed = swap_across(model, places, context.rng)
    parts = [xr.concat([part, cross], "condition", data_vars="minimal") for part, cross in zip(parts, crossed)]
    dataset = xr.concat(parts, xr.IndexVariable("quality", ["values", "names"]), combine_attrs="drop")
    dataset["accuracy"] = ("quality", np.array(accuracy))
    dataset.attrs = {"step": context.run.steps[-1], "n_fit": half, "n_test": half, "excluded": EXCLUDED}
    return dataset


def swap_across(
    model: Transformer,
    places: Mapping[str, tuple[Search, CounterfactualPairs, Subspace]],
    rng: np.random.Generator,
) -> Iterator[xr.Dataset]:
    """For each quality, what the *other's* subspace does at its place to its pairs: nothing, if the two are apart."""
    from bindscope.subspaces.measure import fraction_with_interval
    from bindscope.subspaces.positions import find_columns
    from bindscope.subspaces.stream import swap_stream

    for quality, (search, test, _) in places.items():
        (other,) = (subspace for name, (_, _, subspace) in places.items() if name != quality)
        columns = find_columns(test, search.position)
        top = swap_stream(model, test, search.layer, columns, other.swap).argmax(-1).numpy()
        success = fraction_with_interval((top == test.counterfactual_answers).astype(float), rng)
        values = (*success, (top == test.base_answers).mean(), np.nan)
        row = {name: ("condition", [value]) for name, value in zip(KEPT_OF_SUBSPACES, values)}
        yield xr.Dataset(row, {"condition": [CROSS]})


def compute_probes(context: Context) -> xr.Dataset:
    """Linear probes for the value of every variable at every layer and position, last checkpoint."""
    from bindscope.measures.binding.probes import probe_positions

    task: Any = context.run.config.task
    rng = context.rng
    fit, test = (task.sample_evaluation(rng, context.n)["test"] for _ in range(2))
    model, generator = context.run.checkpoint("last"), _generator(context.seed)
    dataset = probe_positions(model, fit, test, generator, on_progress=context.on_progress)
    dataset = dataset.drop_vars(["accuracy_by_variable", "variable"]).isel(probe=0)
    dataset.attrs["step"] = context.run.steps[-1]
    return dataset


def compute_retention(context: Context) -> xr.Dataset:
    """What a heuristic and the last checkpoint answer without the circuit's and without the heuristic's heads."""
    from bindscope.measures.binding.retention import measure_retention

    run = context.run
    _require_phases(context)
    steps = retention_steps(run)
    if len(steps) < 2:
        raise NotYet(
            "no checkpoint of this run's heuristic phase was saved, so there is nothing to compare; train again and save "
            "more often, with a smaller training.checkpoints.every"
        )
    before, after = steps
    task: Any = run.config.task
    batch = task.sample_evaluation(context.rng, context.n)["test"]
    first, last = ((step, run.checkpoint(step)) for step in (before, after))
    return measure_retention(first, last, batch, context.rng, on_progress=context.on_progress)


def _require_phases(context: Context) -> None:
    """Without both phases there is nothing to be retained, or to be built on top of it."""
    found = {phase.name for phase in phases_of_run(context.run)}
    missing = [name for name in ("heuristic", "systematic") if name not in found]
    if "systematic" in found and missing:
        raise NotTestable("this run has no heuristic phase, so there is nothing to be retained")
    if missing:
        raise NotYet(f"no {' and no '.join(missing)} phase was found: {tell_training(compute_trajectory(context))}")


def compute_lens(context: Context) -> xr.Dataset:
    """The logit lens at the colon over checkpoints: answer, line 1's constant and the other constants."""
    from bindscope.measures.lens import logit_lens

    run = context.run
    task: Any = run.config.task
    batch = task.sample_evaluation(context.rng, context.n)["test"]
    steps = track_steps(run)
    if not steps:
        raise NotYet("no checkpoint was saved yet")
    models = ((step, run.checkpoint(step)) for step in steps)
    told = context.on_progress
    on_progress = None if told is None else lambda done, total: told(done, len(steps))
    return logit_lens(models, batch, rng=context.rng, on_progress=on_progress)


def retention_steps(run: Run) -> Sequence[int]:
    """The two checkpoints that are compared."""
    chosen = phase_checkpoints(run, phases_of_run(run))
    return tuple(sorted({chosen[name] for name in ("heuristic", "systematic") if name in chosen}))


def sample_halves(run: Run, rng: np.random.Generator, half: int) -> dict[str, tuple[CounterfactualPairs, ...]]:
    """For values and for names, pairs to fit on and as many others to test on."""
    from bindscope.subspaces import QUALITIES, RANKS

    if run.config.model.d_model < max(RANKS.values()):
        raise NotTestable(
            f"a stream {run.config.model.d_model} wide cannot hold {max(RANKS.values())} dimensions for names"
        )
    return {quality: tuple(sample_quality(run, rng, half, quality) for _ in range(2)) for quality in QUALITIES}


def sample_quality(run: Run, rng: np.random.Generator, n: int, quality: str) -> CounterfactualPairs:
    """Pairs that differ in what is looked for: the root's constant, or the variable that is asked."""
    if quality == "values":
        return sample_pairs(run, rng, n)
    task: Any = run.config.task
    if task.lines < LEAST_LINES:
        raise NotTestable(f"programs of {task.lines} lines are too short for two chains from line {FIRST_ROOT_LINE} on")
    return sample_name_pairs(task, rng, n, "query", first_root_line=FIRST_ROOT_LINE)


def _generator(seed: int) -> torch.Generator:
    import torch

    return torch.Generator().manual_seed(seed)


def _part(on_progress: OnProgress | None, index: int, of: int) -> OnProgress | None:
    """Progress of one of several equal parts."""
    if on_progress is None:
        return None
    return lambda done, total: on_progress(index * total + done, of * total)


RESULTS = (
    Result("subspaces", "subspaces of values and names", compute_subspaces, revision=2, n=N_PAIRS, steps=last_step,
           passes=7),
    Result("probes", "probes for every variable", compute_probes, revision=2, n=1000, steps=last_step, passes=6),
    Result("retention", "without circuit, without heuristic", compute_retention, revision=2, n=1000,
           steps=retention_steps, metrics=True, passes=7),
    Result("lens", "logit lens", compute_lens, n=400, steps=track_steps),
)  # fmt: skip
