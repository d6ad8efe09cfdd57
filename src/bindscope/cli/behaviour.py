"""``bindscope behaviour``: what a checkpoint answers, told apart by what it was asked."""

from __future__ import annotations

import json as json_format
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from bindscope.cli.behaviour_tables import (
    format_behaviour,
    format_confusion,
    format_grid,
    format_importance,
    format_steps,
)
from bindscope.cli.labelled import dataset_to_mapping
from bindscope.cli.options import HERE, AtLeastOne, Flag, Place, Seed
from bindscope.errors import BindscopeError
from bindscope.runs.locate import find_run

if TYPE_CHECKING:
    import xarray as xr

    from bindscope.runs.directory import Run

N_QUESTIONS, N_CELL = 2000, 100  # how many questions a table draws, and each cell of the grid of lengths


def behaviour(
    run: str,
    /,
    *,
    by: str = "depth",
    only: Literal["all", "misleading", "conflict"] = "all",
    confusion: Flag = False,
    importance: Literal["right", "line-1"] | None = None,
    lengths: str | None = None,
    depths: str = "1-13",
    step: str = "last",
    n: AtLeastOne | None = None,
    seed: Seed = 1,
    place: Place = HERE,
    json: Flag = False,
    out: Path | None = None,
) -> None:
    """Tell a checkpoint's answers apart by what was asked.

    Accuracy, the line each prediction comes from and the rules it follows, by any
    attribute of the program; or the confusion of digits, what mistakes depend on,
    or accuracy by program length and depth. Fractions have 95 % Wilson intervals.

    Examples:
        bindscope behaviour binding-laptop --by root-line --step 600
        bindscope behaviour binding-laptop --by depth --only conflict --step 600
        bindscope behaviour binding-laptop --importance right --step 1700
        bindscope behaviour binding-plain --lengths 2-25 --depths 1-13 --n 50
        bindscope behaviour binding-laptop --step all

    Parameters
    ----------
    run
        A path, a name under ./runs, or a shipped run's name.
    by
        The attribute: depth, root-line, query-line, distance, n-distractors, n-distinct, answer and others.
    only
        Which questions: all; misleading, answered by neither of the first two lines; conflict, to which line 1, the
        nearest constant and the chain give three different answers.
    confusion
        Show which digit was given for which, instead.
    importance
        Show which attributes decide whether answers are right, or whether they are line 1's constant, instead.
    lengths
        Show accuracy for programs of these many lines (2-25), by depth, instead.
    depths
        The depths of --lengths.
    step
        Which checkpoint: a step, or 'last'. 'all' asks every saved one the 300 programs that the web page shows, and
        keeps what it said with the run's results.
    n
        How many questions: 2000 when left out, or 100 for each cell of --lengths.
    seed
        The seed that draws them.
    json
        Print the numbers as JSON instead of tables.
    out
        Also write them to this file, as netCDF.
    """
    from bindscope.families import require_kind
    from bindscope.runs.directory import Run
    from bindscope.runs.results import write_dataset

    instead = [name for name, asked in (("--confusion", confusion), ("--importance", importance), ("--lengths", lengths))
               if asked]  # fmt: skip
    if len(instead) > 1:
        raise BindscopeError(f"{' and '.join(instead)}: each is a table of its own; give one of them.")
    opened = Run.open(find_run(run), place)
    require_kind(opened.name, opened.config.task, "programs")
    if step == "all":
        if instead or n is not None:
            raise BindscopeError(
                "--step all: the programs are those of the web page, and the table is accuracy by step."
            )
        print(_measure_all(run, place, json, out))
        return
    found = opened.find_step(step)
    if lengths is not None:
        dataset = _measure_grid(
            opened, found, parse_range(lengths, "--lengths"), parse_range(depths, "--depths"), n, seed, only
        )
        text = format_grid(dataset)
    else:
        dataset, text = _measure_questions(opened, found, by, only, confusion, importance, n or N_QUESTIONS, seed)
    dataset.attrs |= {"run": opened.name, "step": found, "seed": seed}
    if json:
        print(json_format.dumps(dataset_to_mapping(dataset)))
    else:
        print(f"{opened.name} at step {found:,}\n\n{text}")
    if out is not None:
        write_dataset(out, dataset)
        if not json:
            print(f"\nnumbers  {out}")


def parse_range(text: str, option: str) -> range:
    """``2-25`` as the whole numbers from 2 to 25, ``7`` as 7 alone.

    >>> parse_range("2-4", "--lengths")
    range(2, 5)
    """
    first, dash, last = text.partition("-")
    if not (first.isascii() and first.isdigit() and (not dash or (last.isascii() and last.isdigit()))):
        raise BindscopeError(f"{option} {text}: give a number or a range such as 2-25.")
    numbers = range(int(first), int(last if dash else first) + 1)
    if not numbers or numbers.start < 1 or numbers.stop > 31:
        raise BindscopeError(f"{option} {text}: give numbers from 1 to 30, the smaller one first.")
    return numbers


def _measure_all(run: str, place: Place, json: bool, out: Path | None) -> str:
    """What every saved checkpoint says to the programs of the web page, saved with the run; as a table or JSON."""
    from bindscope.cli.verify import open_library, watch_results
    from bindscope.runs.results import write_dataset
    from bindscope.studies.binding.behaviour.measure import accuracy_by_step

    library, _ = open_library(run, placement=place)
    with watch_results() as on_result:
        filled = library.fill("predictions", on_result(library.results["predictions"], 0, 1))
    if filled.dataset is None:
        raise BindscopeError(f"{run}: {filled.reason}.")
    dataset = accuracy_by_step(filled.dataset)
    dataset.attrs |= {"run": library.run.name, "seed": library.seed}
    if out is not None:
        write_dataset(out, dataset)
    if json:
        return json_format.dumps(dataset_to_mapping(dataset))
    return f"{library.run.name}\n\n{format_steps(dataset)}\nkept in {filled.path}"


def _measure_questions(
    run: Run, step: int, by: str, only: str, confusion: bool, importance: str | None, n: int, seed: int
) -> tuple[xr.Dataset, str]:
    """The asked table over questions as in training, and its text."""
    import numpy as np

    from bindscope.measures.binding.attributes import check_attribute
    from bindscope.measures.binding.behaviour import behaviour_by
    from bindscope.measures.binding.confusion import confusion as confuse
    from bindscope.measures.binding.importance import explain_behaviour
    from bindscope.measures.binding.predictions import predict_answers

    by, rng = check_attribute(by), np.random.default_rng(seed)
    batch = run.config.task.sample_evaluation(rng, n)["test"]
    predictions = predict_answers(run.checkpoint(step), batch).select(only)  # type: ignore[arg-type]
    if confusion:
        dataset = confuse(predictions)
        text = format_confusion(dataset)
    elif importance is not None:
        dataset = explain_behaviour(predictions, importance.replace("-", "_"), rng)  # type: ignore[arg-type]
        text = format_importance(dataset)
    else:
        dataset = behaviour_by(predictions, by)
        text = format_behaviour(dataset, by)
    dataset.attrs["selection"] = only
    return dataset, text


def _measure_grid(
    run: Run, step: int, lengths: range, depths: range, n: int | None, seed: int, only: str
) -> xr.Dataset:
    import numpy as np
    from rich.console import Console
    from rich.progress import Progress

    from bindscope.measures.binding.generalisation import length_depth_grid

    model, rng = run.checkpoint(step), np.random.default_rng(seed)
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        bar = progress.add_task("program lengths")
        return length_depth_grid(
            model, run.config.task, lengths, depths, n or N_CELL, rng,  # type: ignore[arg-type]
            on_progress=lambda done, total: progress.update(bar, completed=done, total=total),
            selection=only,  # type: ignore[arg-type]
        )  # fmt: skip
