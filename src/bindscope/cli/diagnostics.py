"""``bindscope diagnostics``: cheap numbers about checkpoints; ``bindscope announce``: which of them tells a plateau's end."""

from __future__ import annotations

import json as json_format
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bindscope.cli.asking import asking
from bindscope.cli.labelled import dataset_to_mapping
from bindscope.cli.options import HERE, Flag, Place
from bindscope.cli.outcome import NUMBERS, check_out, show_progress, write_out
from bindscope.cli.table import format_table
from bindscope.questions.diagnostics import Diagnostics
from bindscope.questions.opened import Opened

if TYPE_CHECKING:
    import xarray as xr


@asking(Diagnostics)
def diagnostics(question: Diagnostics, /, *, place: Place = HERE, out: Path | None = None, json: Flag = False) -> None:
    """Measure plateau diagnostics: collapse, repetition, head entropies, participation ratio, gradient noise, steepness.

    Each is cheap and has an interval over minibatches. What all checkpoints of a
    shipped run have is saved: 'bindscope figure RUN diagnostics' draws it, and
    'bindscope announce RUN' tells which of them leaves its range first.

    Examples:
        bindscope diagnostics binding-plain --steps 0,300,600,last
        bindscope diagnostics assign-add --out diagnostics.nc

    Parameters
    ----------
    out
        Also write the figure (.svg, .pdf, .png) or all numbers (.nc), those of every layer, head and group included.
    json
        Print the numbers as JSON instead of a table.
    """
    check_out(out)
    opened = Opened.at(question.run, place)
    with show_progress("checkpoints") as on_progress:
        dataset = question.answer(opened, on_progress)
    print(json_format.dumps(dataset_to_mapping(dataset)) if json else format_diagnostics(dataset))
    if out is not None:
        from bindscope.studies.development.diagnostics.draw import draw_diagnostics

        figure = None if out.suffix.lower() == NUMBERS else draw_diagnostics({"diagnostics": dataset})
        path = write_out(dataset, out, figure)
        if not json:
            print(f"\nwritten  {path}")


def announce(*run: str, json: Flag = False) -> None:
    """Tell which number leaves its range before a run on programs begins to follow chains, with its base rate.

    A number departs at the first step at which it lies outside the range it had on
    the plateau's first half. The base rate is how often one that only fluctuates
    would have departed before the answers did; 'fires early too' is whether the
    same rule fires inside the first half, where nothing follows. Diagnostics are measured first
    where they are not saved, in about a minute.

    Examples:
        bindscope announce binding-plain binding-laptop
        bindscope announce binding-laptop --json

    Parameters
    ----------
    run
        Paths, names under ./runs, or names of shipped runs; all shipped runs on programs when left out.
    json
        Print the numbers as JSON instead of tables.
    """
    from bindscope.cli.verify import open_library
    from bindscope.studies.development.diagnostics.announce import find_announcements
    from bindscope.studies.framework.results import NotTestable

    found, untold = [], []
    for name in run or _shipped_programs():
        library, _ = open_library(name)
        try:
            with show_progress("checkpoints") as on_progress:
                found.append(find_announcements(library, on_progress))
        except NotTestable as problem:
            if run:
                raise
            untold.append(f"{name}: {problem}")
    if json:
        print(json_format.dumps([dataset_to_mapping(each) for each in found]))
    else:
        print("\n\n".join([*map(format_announcements, found), *untold]))


def format_diagnostics(dataset: xr.Dataset) -> str:
    """One row a diagnostic, one column a checkpoint."""
    from bindscope.studies.development.diagnostics.measure import HEADLINES, read_headline
    from bindscope.studies.framework.curves import NotMade

    rows = []
    for name, (title, _) in HEADLINES.items():
        try:
            curve = read_headline(dataset, name)
        except NotMade:
            continue
        rows.append([title, *(_with_interval(curve.sel(step=step)) for step in curve.step.values)])
    head = f"{dataset.attrs['run']}: {dataset.attrs['n_examples']} examples in {dataset.attrs['n_batches']} minibatches"
    steps = [f"step {int(step):,}" for step in dataset.step.values]
    return f"{head}\n\n{format_table(['', *steps], rows, numbers=range(1, len(steps) + 1))}"


def format_announcements(dataset: xr.Dataset) -> str:
    """One row a number: when it departs, by how much it leads, and how often it would have by accident."""
    answers, plateau = int(dataset.attrs["answers_depart"]), dataset.attrs["plateau"]
    rows = []
    for number in dataset.sortby("departs").number.values:
        one = dataset.sel(number=number)
        departs = "–" if one.departs.isnull() else f"{int(one.departs):,}"
        lead = "–" if one.lead.isnull() else f"{int(one.lead):+,}"
        early = "–" if one.fires_early.isnull() else "yes" if float(one.fires_early) else "no"
        told = not bool(one.base_rate.isnull())
        announces = ("yes" if float(one.announces) else "no") if told else "cannot be told"
        rows.append([str(number), departs, lead, announces, f"{float(one.base_rate):.2f}" if told else "–",
                     f"{int(one.n_range)} + {int(one.n_before)}", early])  # fmt: skip
    head = (
        f"{dataset.attrs['run']}: plateau from step {plateau[0]:,} to {plateau[1]:,}; "
        f"follows_chain leaves its range at step {answers:,}"
    )
    if dataset.base_rate.isnull().all():
        head += "; no step was measured between the range and that one, so what announces it cannot be told"
    columns = ["number", "departs at", "lead", "announces", "base rate", "steps in range + after", "fires early too"]
    return f"{head}\n\n{format_table(columns, rows, numbers=range(1, 7))}"


def _with_interval(one: Any) -> str:
    value, low, high = (float(one[name]) for name in ("value", "low", "high"))
    return f"{value:.3g} [{low:.3g} to {high:.3g}]"


def _shipped_programs() -> list[str]:
    from bindscope.families import family_of
    from bindscope.runs.directory import Run
    from bindscope.runs.locate import shipped_runs

    opened = [Run.open(path) for path in shipped_runs()]
    return [run.name for run in opened if {"programs", "claims"} <= set(family_of(run.config.task).pages)]
