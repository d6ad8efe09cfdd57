"""``bindscope experiment``: questions that are answered by training several runs."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from bindscope.cli.options import EACH_RUN, AtLeastOne, EachRun, Flag
from bindscope.cli.outcome import show_progress
from bindscope.cli.table import fill_lines, format_duration, format_table
from bindscope.errors import BindscopeError
from bindscope.runs.locate import RUNS_DIRECTORY
from bindscope.runs.placement import Device

if TYPE_CHECKING:
    import xarray as xr

    from bindscope.runs.directory import Run
    from bindscope.studies.framework.experiments import Cell, Experiment


def experiment(
    name: str | None = None,
    /,
    *,
    seeds: AtLeastOne | None = None,
    steps: int | None = None,
    jobs: AtLeastOne = 1,
    cluster: str | None = None,
    each_run: EachRun = EACH_RUN,
    device: Device = "cpu",
    only: Annotated[tuple[str, ...], Parameter(negative="")] = (),
    out: Path | None = None,
    figure: Path | None = None,
    full: Flag = False,
    pretrained: Path | None = None,
    show: Flag = False,
) -> None:
    """List the experiments, or train what one needs and answer its question.

    Every variant and seed is a run of its own, so the command can be stopped and
    given again: runs that have ended are not trained again, interrupted ones go on.

    Examples:
        bindscope experiment
        bindscope experiment loss --jobs 2
        bindscope experiment identity --only none --only both --seeds 1
        bindscope experiment pair-fraction --cluster auto --out /shared/pair-fraction
        bindscope experiment gpt2 --pretrained gpt2 --only pretrained-32
        bindscope experiment seeds --show

    Parameters
    ----------
    name
        Which experiment; all are listed when left out.
    seeds
        How many seeds to train each variant with, counted from 0; the experiment's own number when left out.
    steps
        How many steps to train at most; the experiment's own when left out.
    jobs
        How many runs to train at once, one CPU thread each.
    cluster
        Train on the machines of a Ray cluster instead: its address, or auto for the one this machine belongs to.
        All must share the directory; as many runs are trained at once as they have room for, whatever --jobs says.
    device
        Where new runs are trained; auto takes a GPU when there is one. Several jobs share it.
    only
        Only this variant; give it once per variant. All of them when left out.
    out
        The directory that holds the runs, the dataset and the figure; runs/experiment-NAME when left out.
    figure
        The figure's file; its ending chooses the format (svg, png, pdf).
    full
        Also train the variants whose size is for many machines (those of the papers).
    pretrained
        For the experiment gpt2: a local Hugging Face directory (config.json and model.safetensors) with the GPT-2 to start
        from; nothing is downloaded.
    show
        Train nothing: the answer from the dataset made here before, else from the shipped one.
    """
    from bindscope.studies.framework.experiments import all_experiments, find_experiment, plan_cells, train_cells

    if name is None:
        print(format_experiments(all_experiments()))
        return
    chosen = find_experiment(name) if pretrained is None else _find_pretrained(name, pretrained)
    if figure is not None:
        from bindscope.studies.plots.style import figure_format

        figure_format(figure)  # refused before anything is trained
    if show:
        _show(chosen, out, figure)
    else:
        cells = plan_cells(chosen, None if seeds is None else range(seeds), only, steps, full)
        directory = out or RUNS_DIRECTORY / f"experiment-{chosen.name}"
        trained = train_cells(cells, directory, jobs, cluster, device, each_run)
        _answer(chosen, len(cells), trained, directory, figure)


def _find_pretrained(name: str, directory: Path) -> Experiment:
    """The experiment on GPT-2 with the variants that start from ``directory``."""
    from bindscope.studies.symbols.pretrained.define import NAME, PRETRAINED, explain_left_out, gpt2_experiment

    if name != NAME:
        raise BindscopeError(f"--pretrained: the experiment {NAME} starts from pretrained weights, '{name}' does not.")
    chosen, left_out = gpt2_experiment(directory), explain_left_out(directory)
    if not any(variant.labels["model"] == PRETRAINED for variant in chosen.variants):
        raise BindscopeError(f"--pretrained: nothing can start from these weights; {left_out}")
    if left_out:
        print(f"bindscope: {left_out}", file=sys.stderr)
    return chosen


def format_experiments(experiments: Mapping[str, Experiment]) -> str:
    """One row for each experiment."""
    rows = [
        [
            each.name,
            each.preset,
            str(sum(not v.full for v in each.variants) * each.seeds),
            format_duration(each.usual_seconds),
            each.question,
        ]
        for each in experiments.values()
    ]
    return format_table(["experiment", "preset", "runs", "about", "question"], rows, numbers=[2])


def format_cells(dataset: xr.Dataset, meanings: Mapping[str, str], heading: str = "variant") -> str:
    """One row for each variant: per seed when it left the plateau, when it had learned, and its last accuracy."""
    import numpy as np

    if "test_perplexity" in dataset:
        from bindscope.cli.perplexities import format_perplexities

        return format_perplexities(dataset)
    if "split" in dataset.dims:
        return _format_splits(dataset, heading)

    def steps(values: np.ndarray, last: np.ndarray) -> str:
        texts = [f"> {end:,.0f}" if np.isnan(step) else f"{step:,.0f}" for step, end in zip(values, last) if end == end]
        return ", ".join(texts)

    rows = []
    for name in dataset.variant.values:
        row = dataset.sel(variant=name)
        last = row.last_step.values
        accuracies = ", ".join(f"{value:.3f}" for value in row.last_accuracy.values if value == value)
        rows.append(
            [str(name), steps(row.left_plateau.values, last), steps(row.learned.values, last), accuracies,
             meanings[str(name)]]
        )  # fmt: skip
    return format_table([heading, "left the plateau", "every depth ≥ 90 %", "last accuracy", "what it is"], rows)


def _format_splits(dataset: xr.Dataset, heading: str) -> str:
    """One row for each variant: its seeds, and the mean accuracy of each split at the end."""
    import numpy as np

    splits = [str(split) for split in dataset.split.values]
    rows = []
    for name in dataset.variant.values:
        seeds = dataset.sel(variant=name)
        means = seeds.last_accuracy.transpose("seed", "split").mean("seed").values
        steps = float(seeds.last_step.max())
        rows.append(
            [
                str(name),
                str(int(np.isfinite(seeds.last_step.values).sum())),
                f"{steps:,.0f}",
                *(f"{m:.3f}" for m in means),
            ]
        )
    return format_table([heading, "seeds", "steps", *splits], rows, numbers=range(1, 3 + len(splits)))


def _answer(
    chosen: Experiment, n_cells: int, trained: Iterator[tuple[Cell, Run]], directory: Path, figure: Path | None
) -> None:
    """Tell of each run as it ends and answer the question by all of them, or by those that could be trained."""
    runs: dict[Cell, Run] = {}
    try:
        with show_progress("training") as on_progress:
            on_progress(0, n_cells)
            for cell, run in trained:
                runs[cell] = run
                on_progress(len(runs), n_cells)
                if not sys.stdout.isatty():  # as in the log of a job
                    print(f"{run.name} has ended, {len(runs)} of {n_cells}", flush=True)
    except BindscopeError:
        if runs:
            finish_experiment(chosen, runs, directory, figure)
        raise
    finish_experiment(chosen, runs, directory, figure)


def finish_experiment(chosen: Experiment, runs: Mapping[Cell, Run], directory: Path, figure: Path | None) -> None:
    """Measure what the records do not hold, keep the dataset, and print the answer."""
    from bindscope.studies.framework.experiments import experiment_dataset, save_experiment_dataset

    with show_progress("measuring") as on_progress:
        dataset = experiment_dataset(chosen, runs, on_progress)
    path = save_experiment_dataset(dataset, directory / f"{chosen.name}.nc")
    _print_answer(chosen, dataset)
    print(f"\nfigure   {_save_figure(chosen, dataset, figure or path.with_suffix('.svg'))}\nnumbers  {path}")


def _show(chosen: Experiment, out: Path | None, figure: Path | None) -> None:
    from bindscope.studies.framework.experiments import find_experiment_dataset, load_experiment_dataset

    found = find_experiment_dataset(chosen.name, RUNS_DIRECTORY) if out is None else out / f"{chosen.name}.nc"
    if found is None or not found.is_file():
        raise BindscopeError(
            f"experiment {chosen.name}: there is no dataset of it yet; train its runs with "
            f"'bindscope experiment {chosen.name}'."
        )
    dataset = load_experiment_dataset(found)
    _print_answer(chosen, dataset)
    target = figure or Path(f"experiment-{chosen.name}.svg")
    print(f"\nfigure   {_save_figure(chosen, dataset, target)}\nnumbers  {found}")


def _print_answer(chosen: Experiment, dataset: xr.Dataset) -> None:
    import json

    table = format_cells(dataset, json.loads(dataset.attrs["meanings"]))
    words = fill_lines(f"{chosen.conclude(dataset)}\n\nLimits: {chosen.limits}")
    print(f"{fill_lines(chosen.question)}\n\n{table}\n\n{words}")


def _save_figure(chosen: Experiment, dataset: xr.Dataset, path: Path) -> Path:
    from bindscope.studies.plots.style import save_figure

    return save_figure(chosen.draw(dataset), path)
