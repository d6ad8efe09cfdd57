"""``bindscope transplant``: give a checkpoint one part of another, and see whether its answers follow."""

from __future__ import annotations

import json as json_format
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from bindscope.cli.options import Flag, Seed
from bindscope.cli.outcome import check_out, show_progress, write_out
from bindscope.cli.pairs import Words
from bindscope.cli.table import format_table
from bindscope.errors import BindscopeError
from bindscope.runs.locate import find_run

USUAL = ("pattern 2", "routing", "computing")


def transplant(
    run: str,
    /,
    *,
    source: Annotated[str | None, Parameter(name="--from")] = None,
    to: str | None = None,
    part: Words = (),
    n: int = 400,
    seed: Seed = 0,
    list_: Annotated[Flag, Parameter(name="--list")] = False,
    out: Path | None = None,
    json: Flag = False,
) -> None:
    """Patch a component of one checkpoint into another (transplant), see whether it answers like it.

    Accuracy on the nine pools with 95 % Wilson intervals: of the receiver, of
    the donor, and of the receiver with the part; and how far this is of the way
    from the one to the other, where they differ by 10 % or more.

    Examples:
        bindscope transplant assign-add --list
        bindscope transplant assign-add
        bindscope transplant assign-add --from 3100 --to 3000 --part QK1 --part "pattern 2"
        bindscope transplant assign-add --from 3000 --to 3100 --part "QK1 + variables"

    Parameters
    ----------
    run
        A path, a name under ./runs, or a shipped run's name: a run on sums.
    source
        The checkpoint that gives (the donor): a step, 'first' or 'last'. Without --from and --to: from after each spike of
        the run to before it.
    to
        The checkpoint that receives.
    part
        What is given, by a name of --list. Names joined by + are given together. Give it once for each trial; 'pattern 2',
        'routing' and 'computing' when none is named.
    n
        How many sums to draw from each pool.
    seed
        The seed that draws them.
    list_
        Print the parts with their meanings, and do nothing else.
    out
        Also write a figure (.svg, .pdf, .png) or the numbers (.nc) of one pair of checkpoints.
    json
        Print the numbers as JSON instead of tables.
    """
    from bindscope.interventions.transplant import find_parts, list_parts
    from bindscope.measures.arithmetic.transplanting import split_row
    from bindscope.runs.directory import Run

    check_out(out)
    opened = Run.open(find_run(run))
    if opened.config.task.family != "assign_add":
        raise BindscopeError(f"{opened.name}: its task is {opened.config.task.family}; transplants need a run on sums.")
    if list_:
        print(_format_parts(list_parts(opened.config.model)))
        return
    if n < 1:
        raise BindscopeError(f"--n: must be at least 1, got {n}.")
    rows = part or USUAL
    pairs = _find_pairs(opened, source, to)
    if out is not None and len(pairs) > 1:
        raise BindscopeError("--out: holds one pair of checkpoints; choose one with --from and --to.")
    for row in rows:
        find_parts(opened.config.model, split_row(row))
    measured = [_measure(opened, donor, receiver, rows, n, seed) for donor, receiver in pairs]
    if json:
        print(json_format.dumps([_to_json(dataset) for dataset in measured]))
    else:
        print("\n\n".join(_format(opened.name, dataset) for dataset in measured))
    if out is not None:
        path = write_out(measured[0], out, _figure(out, opened.name, measured[0]))
        if not json:
            print(f"\nwritten  {path}")


def _find_pairs(opened: Any, source: str | None, to: str | None) -> list[tuple[int, int]]:
    """(donor, receiver) steps: those that were named, or those around each spike."""
    from bindscope.studies.assign_add.learning.spike_windows import find_windows

    if (source is None) != (to is None):
        raise BindscopeError("--from and --to: name both checkpoints, or neither to take those around the spikes.")
    if source is not None and to is not None:
        return [(opened.find_step(source), opened.find_step(to))]
    windows = find_windows(opened)
    if not windows:
        raise BindscopeError(
            f"{opened.name}: no spike with checkpoints close by on both sides; name two with --from and --to."
        )
    return [(window.after, window.before) for window in windows]


def _measure(opened: Any, donor: int, receiver: int, rows: Any, n: int, seed: int) -> Any:
    import numpy as np

    from bindscope.measures.arithmetic.transplanting import ask_pools, measure_transplants

    asked = ask_pools(opened.config.task, np.random.default_rng(seed), n)
    with show_progress("parts") as on_progress:
        models = opened.checkpoint(receiver), opened.checkpoint(donor)
        dataset = measure_transplants(*models, list(rows), asked, seed, on_progress)
    dataset.attrs |= {"run": opened.name, "donor_step": donor, "receiver_step": receiver, "n": n, "seed": seed}
    return dataset


def _format(name: str, dataset: Any) -> str:
    donor, receiver = int(dataset.attrs["donor_step"]), int(dataset.attrs["receiver_step"])
    blocks = [
        f"{name}, from step {donor:,} to step {receiver:,}, {int(dataset.attrs['n'])} sums of each pool\n"
        "accuracy with 95 % Wilson intervals; way: from the receiver (0 %) to the donor (100 %), bootstrap intervals"
    ]
    headings = ["pool", "receiver", "with it", "donor", "way"]
    for part in dataset.part.values:
        at = dataset.sel(part=part)
        rows = [
            [str(pool), *(_cell(at.sel(pool=pool), name) for name in ("receiver_accuracy", "accuracy", "donor_accuracy")),
             _cell(at.sel(pool=pool), "share", 100)]
            for pool in dataset.pool.values
        ]  # fmt: skip
        rows.append(["all that differ", "", "", "", _cell(at, "total_share", 100)])
        blocks.append(f"{part}\n{format_table(headings, rows)}")
    return "\n\n".join(blocks)


def _cell(at: Any, name: str, scale: int = 1) -> str:
    value, low, high = (float(at[f"{name}{end}"]) * scale for end in ("", "_low", "_high"))
    if value != value:
        return "–"
    return f"{value:.3f}  {low:.3f}–{high:.3f}" if scale == 1 else f"{value:.0f} %  [{low:.0f}, {high:.0f}]"


def _format_parts(parts: Any) -> str:
    rows = [[part.name, part.kind, part.meaning] for part in parts.values()]
    return format_table(["part", "kind", "what is taken from the donor"], rows)


def _figure(out: Path, name: str, dataset: Any) -> Any:
    if out.suffix.lower() == ".nc":
        return None
    from bindscope.studies.plots.outcomes import figure_summary

    steps = f"{int(dataset.attrs['donor_step']):,} into {int(dataset.attrs['receiver_step']):,}"
    names = ["accuracy", "accuracy_low", "accuracy_high"]
    return figure_summary(dataset[names].transpose("part", "pool"), "accuracy", f"{name}, parts of step {steps}")


def _to_json(dataset: Any) -> dict[str, Any]:
    def cell(at: Any, name: str) -> list[float | None]:
        values = (float(at[f"{name}{end}"]) for end in ("", "_low", "_high"))
        return [None if value != value else value for value in values]

    rows = [
        {
            "part": str(part),
            "pool": str(pool),
            **{
                key: cell(dataset.sel(part=part, pool=pool), name)
                for key, name in (
                    ("receiver", "receiver_accuracy"),
                    ("donor", "donor_accuracy"),
                    ("transplanted", "accuracy"),
                    ("share", "share"),
                )
            },
        }
        for part in dataset.part.values
        for pool in dataset.pool.values
    ]
    totals = {str(part): cell(dataset.sel(part=part), "total_share") for part in dataset.part.values}
    return {**dataset.attrs, "rows": rows, "total_share": totals}
