"""``bindscope copying``: which symbols the first steps of training teach a model of each width to copy."""

from __future__ import annotations

import json as json_format
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bindscope.cli.options import HERE, AtLeastOne, Flag, Place, Seed
from bindscope.cli.outcome import check_out, show_progress, write_out
from bindscope.cli.table import format_table
from bindscope.errors import BindscopeError

if TYPE_CHECKING:
    import xarray as xr


def copying(
    *,
    widths: str = "32,64,128,256,512",
    n: int = 128,
    steps: str = "1,4",
    seeds: AtLeastOne = 3,
    seed: Seed = 0,
    place: Place = HERE,
    out: Path | None = None,
    json: Flag = False,
) -> None:
    """Measure why wider models copy worse: what their first updates do to unseen symbols.

    Trains a few steps at each width, with and without identity scaling, and reads
    how much the change of W_V W_O copies training symbols, unseen ones and random
    directions, beside what one gradient step should do. Reads no run.

    Examples:
        bindscope copying
        bindscope copying --widths 64,1024 --n 256 --seeds 2
        bindscope copying --out copying.svg

    Parameters
    ----------
    widths
        Widths of the model, with commas between.
    n
        Training symbols, and training sequences.
    steps
        After which steps to look, with commas between; the gradient at the start is always read.
    seeds
        How many seeds to train; intervals are over them.
    seed
        The first seed.
    out
        Also write the figure (.svg, .pdf, .png) or all numbers (.nc).
    json
        Print the numbers as JSON instead of a table.
    """
    from bindscope.studies.symbols.width.measure import measure_directions

    check_out(out)
    sizes, at_steps = _numbers("--widths", widths), _numbers("--steps", steps)
    with show_progress("copying") as on_progress:
        dataset = measure_directions(sizes, n, range(seed, seed + seeds), at_steps, on_progress, place)
    print(json_format.dumps(_to_json(dataset)) if json else format_copying(dataset))
    if out is not None:
        path = write_out(dataset, out, _figure_or_none(dataset, out))
        if not json:
            print(f"\nwritten  {path}")


def format_copying(dataset: xr.Dataset) -> str:
    """How much of a training symbol's reading an unseen one gets, and the readings and fractions behind it."""
    from bindscope.studies.symbols.width.widths import last_step, mean_over_seeds, widths_of

    steps, last = [int(step) for step in dataset.step.values], last_step(dataset)
    ratios, readings, fractions = [], [], []
    for width in widths_of(dataset):

        def show(name: str, step: int = last, model: str = "plain", at: int = width) -> str:
            return mean_over_seeds(dataset, name, model, at, step).number

        predicted = float(dataset.predicted_ratio.sel(model="plain", width=width).mean())
        found = [show("ratio", step) for step in steps]
        ratios.append([f"{width:,}", f"{predicted:.3g}", *found, show("ratio", model="both")])
        readings.append([f"{width:,}", *map(show, ("seen", "unseen", "random", "mismatched"))])
        fractions.append(
            [f"{width:,}", *map(show, ("seen_fraction", "head_fraction", "unseen_fraction", "chance_fraction"))]
        )
    times = ["at the gradient" if step == 0 else f"after step {step}" for step in steps]
    n_symbols = float(dataset.n_symbols.mean())
    return "\n\n".join(
        [
            f"n = {dataset.attrs['n']:,} ({n_symbols:.0f} different symbols on average), {dataset.sizes['seed']} seeds, mean of "
            f"{dataset.sizes['layer']} layers; intervals are Student's over seeds",
            "what an unseen symbol gets of a training symbol's reading; 1: copies whatever the symbol\n"
            + format_table(["width", "predicted", *times, f"identity scaling, step {last}"], ratios, numbers=[0, 1]),
            f"readings rᵀΔw/‖Δ‖ after step {last}, without identity scaling\n"
            + format_table(["width", "training symbols", "unseen", "random directions", "mismatched"], readings, [0]),
            f"fraction of ‖Δ‖² in the span of r wᵀ after step {last}, without identity scaling\n"
            + format_table(["width", "training symbols", "… one head", "unseen", "by chance"], fractions, [0]),
        ]
    )


def _numbers(option: str, text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise BindscopeError(f"{option} {text}: give whole numbers with commas between, such as 64,128.") from None


def _to_json(dataset: xr.Dataset) -> dict[str, Any]:
    from bindscope.cli.labelled import dataset_to_mapping

    return dataset_to_mapping(dataset)


def _figure_or_none(dataset: xr.Dataset, out: Path) -> Any:
    from bindscope.studies.symbols.width.draw_directions import draw_directions

    return None if out.suffix.lower() == ".nc" else draw_directions(dataset)
