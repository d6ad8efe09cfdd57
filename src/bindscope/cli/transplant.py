"""``bindscope transplant``: give a checkpoint one part of another, and see whether its answers follow."""

from __future__ import annotations

import json as json_format
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from bindscope.cli.asking import asking
from bindscope.cli.options import HERE, Flag, Place
from bindscope.cli.outcome import check_out, show_progress, write_out
from bindscope.cli.table import format_table
from bindscope.errors import BindscopeError
from bindscope.questions.opened import Opened
from bindscope.questions.transplants import Transplant


@asking(Transplant, n=400)
def transplant(
    question: Transplant,
    /,
    *,
    list_: Annotated[Flag, Parameter(name="--list")] = False,
    place: Place = HERE,
    out: Path | None = None,
    json: Flag = False,
) -> None:
    """Patch a component of one checkpoint into another (transplant), see whether it answers like it.

    Accuracy with 95 % Wilson intervals, on the nine splits of sums or by depth and
    on misleading programs: of the receiver, of the donor, and of the receiver with
    the part; and how far this is of the way from the one to the other, where they
    differ by 10 % or more. What a shipped run on programs has saved, controls
    included, is drawn by 'bindscope figure RUN transplants'.

    Examples:
        bindscope transplant binding-plain
        bindscope transplant binding-plain --list
        bindscope transplant binding-plain --from 1000 --to 400 --part "L0.QK + L0.OV" --part L1-5.QK --controls 3
        bindscope transplant assign-add --list
        bindscope transplant assign-add
        bindscope transplant assign-add --from 3100 --to 3000 --part QK1 --part "pattern 2"
        bindscope transplant assign-add --from 3000 --to 3100 --part "QK1 + variables"

    Parameters
    ----------
    list_
        Print the parts with their meanings, and do nothing else.
    out
        Also write a figure (.svg, .pdf, .png) or the numbers (.nc) of one pair of checkpoints.
    json
        Print the numbers as JSON instead of tables.
    """
    from bindscope.interventions.transplant import list_parts

    check_out(out)
    opened = Opened.at(question.run, place)
    if list_:
        print(_format_parts(list_parts(opened.run.config.model, opened.task.token_groups or None)))
        return
    asked = question.around_jumps(opened)
    if out is not None and len(asked) > 1:
        raise BindscopeError("--out: holds one pair of checkpoints; choose one with --from and --to.")
    measured = [_measure(opened, each) for each in asked]
    if json:
        print(json_format.dumps([_to_json(dataset) for dataset in measured]))
    else:
        print("\n\n".join(_format(opened.name, dataset) for dataset in measured))
    if out is not None:
        path = write_out(measured[0], out, _figure(out, opened.name, measured[0]))
        if not json:
            print(f"\nwritten  {path}")


def _measure(opened: Opened, question: Transplant) -> Any:
    with show_progress("parts") as on_progress:
        dataset = question.answer(opened, on_progress)
    ends = {f"{name}_step": dataset.attrs.pop(name) for name in ("donor", "receiver")}
    return dataset.assign_attrs(ends)


def _format(name: str, dataset: Any) -> str:
    donor, receiver = int(dataset.attrs["donor_step"]), int(dataset.attrs["receiver_step"])
    blocks = [
        f"{name}, from step {donor:,} to step {receiver:,}, {int(dataset.attrs['n'])} {dataset.attrs['counted']}\n"
        "accuracy with 95 % Wilson intervals; way: from the receiver (0 %) to the donor (100 %), bootstrap intervals"
    ]
    headings = ["split", "receiver", "with it", "donor", "way"]
    for part in dataset.part.values:
        at = dataset.sel(part=part)
        rows = [
            [str(split), *(_cell(at.sel(split=split), name) for name in ("receiver_accuracy", "accuracy", "donor_accuracy")),
             _cell(at.sel(split=split), "fraction", 100)]
            for split in dataset.split.values
        ]  # fmt: skip
        if not dataset.attrs["within"]:
            rows.append(["all that differ", "", "", "", _cell(at, "total_fraction", 100)])
        for draw in at.random_fraction.values if "random_fraction" in at else ():
            rows.append(["changed at random", "", "", "", f"{100 * float(draw):.0f} %"])
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
    return figure_summary(dataset[names].transpose("part", "split"), "accuracy", f"{name}, parts of step {steps}")


def _to_json(dataset: Any) -> dict[str, Any]:
    def cell(at: Any, name: str) -> list[float | None]:
        values = (float(at[f"{name}{end}"]) for end in ("", "_low", "_high"))
        return [None if value != value else value for value in values]

    rows = [
        {
            "part": str(part),
            "split": str(split),
            **{
                key: cell(dataset.sel(part=part, split=split), name)
                for key, name in (
                    ("receiver", "receiver_accuracy"),
                    ("donor", "donor_accuracy"),
                    ("transplanted", "accuracy"),
                    ("fraction", "fraction"),
                )
            },
        }
        for part in dataset.part.values
        for split in dataset.split.values
    ]
    if "random_fraction" in dataset:
        dataset.attrs["random_fraction"] = dict(
            zip(map(str, dataset.part.values), dataset.random_fraction.values.tolist())
        )
    totals = {str(part): cell(dataset.sel(part=part), "total_fraction") for part in dataset.part.values}
    return {**dataset.attrs, "rows": rows, "total_fraction": totals}
