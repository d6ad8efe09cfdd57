"""``bindscope progress``: which parts of the circuit for modular addition are there, checkpoint by checkpoint."""

from __future__ import annotations

import json as json_format
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bindscope.cli.labelled import dataset_to_mapping
from bindscope.cli.options import HERE, AtLeastOne, Flag, Place, Seed
from bindscope.cli.table import format_table
from bindscope.errors import BindscopeError

if TYPE_CHECKING:
    import xarray as xr

    from bindscope.studies.framework.results import Library


def progress(
    run: str,
    /,
    *,
    n: AtLeastOne | None = None,
    seed: Seed = 0,
    fresh: Flag = False,
    scores: str | None = None,
    place: Place = HERE,
    json: Flag = False,
    out: Path | None = None,
) -> None:
    """Measure how much of the circuit for modular addition each checkpoint has.

    Seven measures from 0 to 1, at every saved checkpoint: three read off the
    weights, four over sequences from all splits, positions that training never shows
    included. Prints the table, keeps the numbers as netCDF and draws the figure
    with the run's spikes marked.

    Examples:
        bindscope progress assign-add
        bindscope progress assign-add --n 500 --seed 1 --out progress.png
        bindscope progress assign-add --scores b

    Parameters
    ----------
    run
        A path, a name under ./runs, or a shipped run's name.
    n
        How many sequences to draw from each of the nine splits; 200 when left out.
    seed
        The seed that draws them.
    fresh
        Measure again, whatever was saved.
    scores
        Show instead, for this variable, the score that = gives its value in layer 2 by its nine terms, before and after the
        run's last spike (the first and last checkpoint where there is none).
    json
        Print the numbers as JSON instead of a table, and draw nothing.
    out
        The figure's file (svg, png, pdf); the numbers then go to results/ beside it. By default both go to results/
        inside the run, or to runs/verify-NAME for a shipped run.
    """
    from bindscope.studies.plots.style import figure_format, save_figure

    if out is not None:
        figure_format(out)  # refused before anything is measured
    name = "progress" if scores is None else "score_terms"
    library, dataset, path = _measure(name, run, n, seed, fresh, None if out is None else out.parent, place)
    if json:
        print(json_format.dumps(dataset_to_mapping(dataset)))
        return
    trajectory = library.fill("trajectory").dataset
    if scores is None:
        text, figure = format_progress(dataset), _draw(trajectory, dataset)
    else:
        text, figure = _show_scores(trajectory, dataset, scores)
    print(text)
    print(f"\nnumbers  {path}")
    print(f"figure   {save_figure(figure, out or library.folder / f'{name}.svg')}")


def _measure(
    name: str, run: str, n: int | None, seed: int, fresh: bool, out: Path | None, place: Place
) -> tuple[Library, xr.Dataset, Path | None]:
    """A result of a run on sums, read or measured, with the library it is in and its file."""
    from bindscope.cli.outcome import show_progress
    from bindscope.cli.verify import open_library
    from bindscope.families import require_kind

    library, study = open_library(run, n=n, seed=seed, fresh=fresh, out=out, placement=place)
    require_kind(library.name, study, "sums")
    with show_progress("checkpoints") as on_progress:
        filled = library.fill(name, on_progress)
    if filled.dataset is None:
        raise BindscopeError(f"{library.run.name}: {filled.reason}")
    return library, filled.dataset, filled.path


def _show_scores(trajectory: xr.Dataset | None, dataset: xr.Dataset, variable: str) -> tuple[str, Any]:
    """The nine terms of one variable's score around the last spike with saved checkpoints, as a table and a figure."""
    from bindscope.studies.assign_add.learning.phases import spikes_of
    from bindscope.studies.assign_add.scores.describe import steps_around, tabulate_terms
    from bindscope.studies.assign_add.scores.draw import draw_score_terms

    known = [str(name) for name in dataset.variable.values]
    if variable not in known:
        raise BindscopeError(f"--scores: there is no variable '{variable}'; the run has {', '.join(known)}.")
    spikes = [] if trajectory is None else spikes_of(trajectory)
    before, after = steps_around(dataset, spikes)
    heading = f"score that = gives the value of {variable} in layer 2: terms at step {before:,} → {after:,}"
    columns = ["operand", "of =", *(f"× {key} of value" for key in dataset.key_part.values)]
    table = format_table(columns, tabulate_terms(dataset, variable, (before, after)))
    return f"{heading}\n\n{table}", draw_score_terms(dataset, (before, after), variable, spikes)


def format_progress(dataset: xr.Dataset) -> str:
    """One row a checkpoint, one column a measure; intervals are in the netCDF, sizes in the heading."""
    from bindscope.measures.arithmetic.progress import BESIDE, MEASURES

    names = (*MEASURES, *BESIDE)
    rows = [
        [f"{int(step):,}", *(f"{float(dataset[name].sel(step=step)):.4f}" for name in names)]
        for step in dataset.step.values
    ]
    widest = max(
        float((dataset[f"{name}_high"] - dataset[f"{name}_low"]).max()) for name in names if _sampled(dataset, name)
    )
    head = (
        f"{dataset.attrs['run']}: {dataset.attrs['n_per_split']} sequences from each split, seed {dataset.attrs['seed']}; "
        f"95 % intervals of attn_… and probe_… are at most {100 * widest:.1f} points wide"
    )
    return f"{head}\n\n{format_table(['step', *names], rows, numbers=range(len(names) + 1))}"


def _sampled(dataset: xr.Dataset, name: str) -> bool:
    return f"{name}_low" in dataset


def _draw(trajectory: Any, dataset: xr.Dataset) -> Any:
    from bindscope.studies.assign_add.learning.phases import spikes_of
    from bindscope.studies.assign_add.progress.draw import draw_progress

    return draw_progress(dataset, [] if trajectory is None else spikes_of(trajectory))
