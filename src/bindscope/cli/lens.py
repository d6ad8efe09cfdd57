"""``bindscope lens``: what each layer would answer, over training."""

from __future__ import annotations

import json as json_format
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from bindscope.cli.asking import option
from bindscope.cli.labelled import dataset_to_mapping
from bindscope.cli.options import HERE, AtLeastOne, Flag, Place, Seed
from bindscope.cli.table import format_table
from bindscope.questions.opened import Opened
from bindscope.questions.program import Lens
from bindscope.questions.question import to_steps

if TYPE_CHECKING:
    import xarray as xr


def lens(
    run: Annotated[str, option(Lens, "run")],
    /,
    *,
    steps: Annotated[str, Parameter(name=["--steps", "--step"])] = "all",
    program: str | None = None,
    n: AtLeastOne = 1000,
    seed: Seed = 1,
    place: Place = HERE,
    json: Flag = False,
    out: Path | None = None,
) -> None:
    """Read what each layer would answer, checkpoint by checkpoint (logit lens).

    The residual stream at the answer's position goes through the last LayerNorm and the
    unembedding after every layer. Only programs on which the answer, line 1 and
    a third constant differ are read.

    Examples:
        bindscope lens binding-laptop
        bindscope lens binding-laptop --steps 600,3700 --n 2000 --out lens.nc
        bindscope lens binding-laptop --steps last --program "a=5;b=a;c=3;#b:"

    Parameters
    ----------
    steps
        Which checkpoints: all, last, or steps with commas between.
    program
        Read one program instead, at every position; lines end with ';'.
    n
        How many programs to draw; about half of them tell answer and line 1 apart.
    seed
        The seed that draws them.
    json
        Print the numbers as JSON instead of tables.
    out
        Also write them to this file, as netCDF.
    """
    import numpy as np
    from rich.console import Console
    from rich.progress import Progress

    from bindscope.measures.lens import logit_lens
    from bindscope.runs.results import write_dataset

    opened = Opened.at(run, place)
    task, chosen = opened.task_of("programs"), opened.find_steps(to_steps(steps))
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        tracked = progress.track(chosen, description="checkpoints")
        if program is not None:
            dataset = read_program_lens(opened, (Lens(run=run, program=program, step=step) for step in tracked))
        else:
            batch = task.sample_evaluation(np.random.default_rng(seed), n)["test"]
            models = ((step, opened.load(step)) for step in tracked)
            dataset = logit_lens(models, batch, rng=np.random.default_rng(seed))
            dataset.attrs["seed"] = seed
    dataset.attrs["run"] = opened.name
    if json:
        print(json_format.dumps(dataset_to_mapping(dataset)))
    else:
        print(format_lens(dataset) if program is None else format_program_lens(dataset))
    if out is not None:
        write_dataset(out, dataset)
        if not json:
            print(f"\nnumbers  {out}")


def read_program_lens(opened: Opened, questions: Iterable[Lens]) -> xr.Dataset:
    """Readings of one program over (step, layer, position)."""
    import xarray as xr

    return xr.concat([question.answer(opened).assign_coords(step=question.step) for question in questions], "step")


def format_program_lens(dataset: xr.Dataset) -> str:
    """What each layer would answer at the last position, the colon, step by step."""
    colon = dataset.isel(position=-1)
    rows = [
        [f"{step:,}", str(site), str(top), f"{float(fraction):.3f}", f"{float(answer):.3f}", f"{float(line_1):.3f}"]
        for step in colon.step.values
        for site, top, fraction, answer, line_1 in zip(
            colon.site.values,
            *(colon[name].sel(step=step).values for name in ("top", "top_probability", "answer", "line_1")),
        )
    ]
    answer, line_1 = dataset.attrs["answer_digit"], dataset.attrs["line_1_digit"]
    columns = ["step", "stream", "likeliest", "", f"answer {answer}", f"line 1: {line_1}"]
    return f"{dataset.attrs['run']}: at the colon\n" + format_table(columns, rows, numbers=[0, 3, 4, 5])


def format_lens(dataset: xr.Dataset) -> str:
    """How far the answer's logit stands above line 1's after each layer, and what is on top at the end."""
    head = (
        f"{dataset.attrs['run']}: {dataset.attrs['n']} programs; {dataset.attrs['n_excluded']} left out "
        f"({dataset.attrs['excluded']})"
    )
    layers = [f"after {layer}" for layer in dataset.layer.values]
    margin = [
        [f"{step:,}", *(f"{value:+.2f}" for value in dataset.margin.sel(step=step).values)]
        for step in dataset.step.values
    ]
    top = dataset.isel(layer=-1)
    fractions = [
        [f"{step:,}"]
        + [
            f"{float(top.top.sel(step=step, candidate=c)):.3f} "
            f"({float(top.top_low.sel(step=step, candidate=c)):.3f}–{float(top.top_high.sel(step=step, candidate=c)):.3f})"
            for c in dataset.candidate.values
        ]
        for step in dataset.step.values
    ]
    parts = [
        head,
        "logit of the answer above that of line 1, after each layer\n"
        + format_table(["step", *layers], margin, numbers=range(len(layers) + 1)),
        "which of them is highest at the end, with 95 % bootstrap intervals\n"
        + format_table(["step", *map(str, dataset.candidate.values)], fractions, numbers=[0]),
    ]
    return "\n\n".join(parts)
