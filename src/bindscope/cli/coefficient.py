"""``bindscope coefficient``: the local learning coefficient of checkpoints; ``bindscope calibrate``: where it is known."""

from __future__ import annotations

import json as json_format
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from bindscope.cli.asking import asking
from bindscope.cli.labelled import dataset_to_mapping
from bindscope.cli.options import HERE, Flag, Place, Seed
from bindscope.cli.outcome import NUMBERS, check_out, show_progress, write_out
from bindscope.cli.table import format_table
from bindscope.questions.coefficient import Coefficient
from bindscope.questions.opened import Opened

if TYPE_CHECKING:
    import xarray as xr

    from bindscope.measures.learning_coefficient.calibration import Calibrated


@asking(Coefficient)
def coefficient(question: Coefficient, /, *, place: Place = HERE, out: Path | None = None, json: Flag = False) -> None:
    """Estimate the local learning coefficient: how many directions around a checkpoint its loss can tell apart.

    Langevin chains wander around the checkpoint's weights, drawn back to them; the
    mean loss along the chains, above that of the checkpoint, is the coefficient. A
    minimum whose loss is flat in many directions has a small one. --part moves the
    weights of one layer or head alone, --data asks only some questions. What each
    checkpoint of a shipped run has is saved: 'bindscope figure RUN coefficient'.

    Examples:
        bindscope coefficient binding-plain --steps 400,600,last
        bindscope coefficient binding-plain --part L3.H1 --steps 600
        bindscope coefficient binding-plain --data depth=4 --n 2048 --chains 6
        bindscope coefficient assign-add --out chains.svg

    Parameters
    ----------
    out
        Also write the figure with the traces (.svg, .pdf, .png) or all numbers (.nc).
    json
        Print the numbers as JSON instead of a table.
    """
    check_out(out)
    opened = Opened.at(question.run, place)
    with show_progress("checkpoints") as on_progress:
        dataset = question.answer(opened, on_progress)
    if json:
        print(json_format.dumps(dataset_to_mapping(dataset)))
    else:
        print(format_coefficients(dataset))
    if out is not None:
        from bindscope.studies.development.coefficient.draw import draw_coefficient

        path = write_out(dataset, out, None if out.suffix.lower() == NUMBERS else draw_coefficient(dataset))
        if not json:
            print(f"\nwritten  {path}")


def calibrate(*, seed: Seed = 0, json: Flag = False) -> None:
    """Estimate learning coefficients that are known, to see what the estimator gives.

    Polynomials, a regular model, and linear networks, whose coefficients are
    theorems. It takes about a minute.

    Examples:
        bindscope calibrate
        bindscope calibrate --seed 1 --json

    Parameters
    ----------
    seed
        The seed of the noise.
    json
        Print the numbers as JSON instead of a table.
    """
    from bindscope.measures.learning_coefficient.calibration import calibrate as calibrate_losses

    with show_progress("known losses") as on_progress:
        rows = calibrate_losses(seed, on_progress)
    print(json_format.dumps([asdict(row) for row in rows]) if json else format_known(rows))


def format_coefficients(dataset: xr.Dataset) -> str:
    """One row a checkpoint, and what the chains say of themselves."""
    rows = []
    for step in dataset.step.values:
        one = dataset.sel(step=step)
        if float(one.diverged):
            rows.append([f"{int(step):,}", "–", "–", "–", "–", "–", "the chains diverged: take a smaller --step-size"])
            continue
        remark = "" if float(one.settled) else "not settled: more --draws and --burn-in"
        if float(one.negative) > 0.5:
            remark = "no minimum: most draws lie below the checkpoint"
        if float(one.left):
            remark = "the chains left the neighbourhood: more --elasticity, smaller --step-size"
        interval = f"{float(one.coefficient_low):.1f} to {float(one.coefficient_high):.1f}"
        numbers = [f"{float(one[name]):.2f}" for name in ("drift", "negative", "equipartition")]
        rows.append([f"{int(step):,}", f"{float(one.coefficient):.1f}", interval, *numbers, remark])
    a = dataset.attrs
    head = (
        f"{a['run']}: local learning coefficient of {a['part']} weights on {a['data']} questions; n = {a['n_examples']:,}, "
        f"nβ = {a['scale']:.0f}, γ = {a['elasticity']:g}, ε = {a['step_size']:g}, {a['chains']} chains of {a['draws']} draws"
    )
    columns = ["step", "coefficient", "95 % interval", "drift", "below", "equipartition", ""]
    return f"{head}\n\n{format_table(columns, rows, numbers=range(6))}"


def format_known(rows: list[Calibrated]) -> str:
    """One row a known loss."""
    cells = [
        [row.name, str(row.n_parameters), f"{row.known:g}", f"{row.estimate.coefficient:.2f}",
         f"{row.estimate.low:.2f} to {row.estimate.high:.2f}", f"{row.estimate.equipartition:.2f}"]
        for row in rows
    ]  # fmt: skip
    head = ["loss", "parameters", "known", "estimate", "95 % interval", "equipartition"]
    return format_table(head, cells, numbers=range(1, 6))
