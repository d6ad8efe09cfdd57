"""Which saved checkpoints stand for the phases of a run, and all trainings of its settings side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from bindscope.errors import BindscopeError
from bindscope.studies.binding.learning.cells import summarise_cell
from bindscope.studies.framework.curves import Curve, NotMade, over_steps
from bindscope.studies.framework.experiments import MADE_BY
from bindscope.studies.framework.results import Context, Result
from bindscope.studies.framework.seeds import find_seed_curves, matching_variants
from bindscope.studies.framework.trajectory import phases_of, trajectory_dataset, with_intervals

if TYPE_CHECKING:
    from bindscope.measures.binding.phases import Phase
    from bindscope.runs.directory import Run


SEED_EXPERIMENTS = ("seeds", "seeds-plain", "seeds-neutral", "seeds-deep")


def phase_checkpoints(run: Run, phases: Sequence[Phase]) -> dict[str, int]:
    """For each phase the saved step nearest to its middle, among those inside it; phases without one are left out."""
    chosen = {}
    for phase in phases:
        inside = [step for step in run.steps if phase.first_step <= step <= phase.last_step]
        middle = (phase.first_step + phase.last_step) / 2
        if inside:
            chosen[phase.name] = min(inside, key=lambda step: (abs(step - middle), step))
    if "systematic" in chosen:  # the mechanism is best seen where training left it
        chosen["systematic"] = run.steps[-1]
    return chosen


def phases_of_run(run: Run) -> list[Phase]:
    """The phases in the run's evaluations; none where it has no evaluation."""
    records = [record for record in run.metrics if "watched" in record]
    return phases_of(trajectory_dataset(records, run.manifest.config)) if records else []


def compute_seeds(context: Context) -> xr.Dataset:
    """This training and those of other seeds of its settings, over (seed, …), as ``summarise_cell`` gives them.

    Where no experiment trained other seeds, this one stands alone. ``train`` says what would train more.
    """
    run, config = context.run, context.run.config
    own = summarise_cell(context.found["trajectory"]).assign(status=str(run.status)).expand_dims(seed=[config.seed])
    cells, source = [own], run.name
    with suppress(BindscopeError):  # nobody trained another
        others = find_seed_curves(config, context.runs_directory, SEED_EXPERIMENTS)
        chosen = [name for name in own.data_vars if name in others]
        source += f", {MADE_BY}{others.attrs['experiment']}"
        cells.append(others[chosen].isel(seed=np.flatnonzero(others.seed.values != config.seed)))
    names = [name for name in own.data_vars if all(name in cell for cell in cells)]
    dataset = xr.concat([cell[names] for cell in cells], "seed", join="outer", data_vars="all", combine_attrs="drop")
    dataset = dataset.sortby("seed")
    planned = next((experiment.name for experiment, _ in matching_variants(config)), None)
    more = f"'bindscope experiment {planned}'" if planned else "giving the same settings another --seed"
    dataset.attrs = {"run": run.name, "own_seed": config.seed, "train": more, "source": source}
    return dataset


def _on_misleading(name: str) -> Callable[[xr.Dataset], xr.Dataset]:
    def read(trajectory: xr.Dataset) -> xr.Dataset:
        known = with_intervals(trajectory)
        return over_steps(known[name], known[f"{name}_low"], known[f"{name}_high"])

    return read


def _at_depth(depth: int) -> Callable[[xr.Dataset], xr.Dataset]:
    def read(trajectory: xr.Dataset) -> xr.Dataset:
        known = with_intervals(trajectory)
        if depth not in known.depth.values:
            raise NotMade(f"no chains of depth {depth}")
        at = known.sel(depth=depth)
        return over_steps(at.accuracy_by_depth, at.accuracy_by_depth_low, at.accuracy_by_depth_high)

    return read


CURVES = (
    Curve(
        "follows-chain",
        "follows the chain where lines 1 and 2 mislead",
        "Of programs whose answer is neither line 1's constant nor line 2's, the fraction answered correctly: binding, "
        "where the heuristic cannot help.",
        "trajectory",
        _on_misleading("follows_chain"),
        "fraction",
    ),
    Curve(
        "follows-early-lines",
        "answers from line 1 or 2 where these mislead",
        "Of the same programs, the fraction answered with line 1's or line 2's constant: the heuristic, where it fails.",
        "trajectory",
        _on_misleading("follows_early_lines"),
        "fraction",
    ),
    *(
        Curve(
            f"depth-{depth}",
            f"accuracy at depth {depth}",
            f"Fraction answered correctly where the value is {depth} {'hop' if depth == 1 else 'hops'} away.",
            "trajectory",
            _at_depth(depth),
            "fraction",
        )
        for depth in range(1, 5)
    ),
)
RESULTS = (
    Result("seeds", "other seeds", compute_seeds, metrics=True, needs=("trajectory",), kept=False,
           experiments=SEED_EXPERIMENTS),
)  # fmt: skip
